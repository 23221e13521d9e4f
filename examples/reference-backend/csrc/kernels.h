// The kernels that a backend must have: memory, copies, reading one number. dispatch.cpp registers them.
#pragma once

#include <ATen/core/Tensor.h>

namespace refdev {

// Memory. torch.ones, torch.randn and most others get their tensor from the first, copies to the device from the second.
at::Tensor empty(
    c10::IntArrayRef size,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format);
at::Tensor empty_strided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory);
const at::Tensor& resize_(
    const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> memory_format);
at::Tensor& set_storage(
    at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride);
at::Tensor& set_to_nothing(at::Tensor& self);

// Copies between devices, from the CPU and to it. They also change the dtype where it differs.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking);
at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target);
at::Scalar local_scalar_dense(const at::Tensor& self); // Tensor.item()

// Operators that do not fall back to the CPU. A vendor adds more of these, the busiest first.
at::Tensor& fill_(at::Tensor& self, const at::Scalar& value);
at::Tensor& zero_(at::Tensor& self);

} // namespace refdev
