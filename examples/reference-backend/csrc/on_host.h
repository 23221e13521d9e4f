// Device memory as the CPU sees it.
#pragma once

#include "device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

namespace refdev {

// A CPU tensor over the same memory. Only this device can do that: on hardware, a copy or a kernel launch stands here.
inline at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.device().type() != kDeviceType) {
    return tensor;
  }
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.dtype()));
}

} // namespace refdev
