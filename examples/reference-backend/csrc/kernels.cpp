#include "kernels.h"

#include "allocator.h"
#include "compat.h"
#include "device.h"
#include "faults.h"
#include "on_host.h"
#include "storage.h"

#include <ATen/EmptyTensor.h>

namespace refdev {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void require(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kBool:
    case c10::kByte:
    case c10::kChar:
    case c10::kShort:
    case c10::kInt:
    case c10::kLong:
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kFloat:
    case c10::kDouble:
      return;
    default:
      TORCH_CHECK_TYPE(false, "refdev does not support torch.", c10::getDtypeNames(dtype).first);
  }
}

c10::Device target(std::optional<c10::Device> device) {
  return {kDeviceType, device_index(device ? device->index() : -1)};
}

// Makes sure that the storage is large enough for the tensor's shape.
void fit_storage(const at::Tensor& self) {
  const auto needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.dtype().itemsize(), self.storage_offset());
  if (needed > self.storage().nbytes()) {
    resize_storage(self.storage(), needed);
  }
}

} // namespace

at::Tensor empty(
    c10::IntArrayRef size,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout>,
    std::optional<c10::Device> device,
    std::optional<bool>,
    std::optional<c10::MemoryFormat> memory_format) {
  const auto scalar_type = c10::dtype_or_default(dtype);
  require(scalar_type);
  const c10::DeviceGuard guard(target(device));
  return at::detail::empty_generic(size, allocator(), kKeys, scalar_type, memory_format);
}

at::Tensor empty_strided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout>,
    std::optional<c10::Device> device,
    std::optional<bool>) {
  const auto scalar_type = c10::dtype_or_default(dtype);
  require(scalar_type);
  const c10::DeviceGuard guard(target(device));
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys, scalar_type);
}

const at::Tensor& resize_(
    const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> memory_format) {
  if (self.sizes() != size) {
    self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  }
  if (memory_format) {
    self.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  fit_storage(self);
  return self;
}

at::Tensor& set_storage(
    at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  TORCH_CHECK(
      source.device() == self.device(),
      "set_: the storage is on ", source.device(), " and the tensor on ", self.device());
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.empty()) {
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, stride);
  }
  fit_storage(self);
  return self;
}

at::Tensor& set_to_nothing(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  const at::Storage nothing(c10::Storage::use_byte_size_t(), 0, allocator()->allocate(0), allocator(), true);
  return set_storage(self, nothing, 0, {0}, {});
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool) {
  for (const auto& tensor : {self, target}) {
    if (tensor.device().type() == kDeviceType) {
      faults::on_entry("aten::_copy_from", tensor.device());
    }
  }
  on_host(target).copy_(on_host(self));
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  faults::on_entry("aten::_local_scalar_dense", self.device());
  return on_host(self).item();
}

at::Tensor& fill_(at::Tensor& self, const at::Scalar& value) {
  faults::on_entry("aten::fill_.Scalar", self.device());
  on_host(self).fill_(value);
  return self;
}

at::Tensor& zero_(at::Tensor& self) {
  return fill_(self, 0);
}

} // namespace refdev
