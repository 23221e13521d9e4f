// Which devices there are, and which is current in this thread.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

namespace refdev {

constexpr auto kDeviceType = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDeviceCount = 2;

inline thread_local c10::DeviceIndex current_device = 0;

// The index itself; the current device's for -1, which is how PyTorch writes "none given". Throws for any other.
inline c10::DeviceIndex device_index(int64_t index) {
  if (index == -1) {
    return current_device;
  }
  TORCH_CHECK(
      0 <= index && index < kDeviceCount,
      "invalid device index ", index, ": there are ", static_cast<int>(kDeviceCount), " refdev devices");
  return static_cast<c10::DeviceIndex>(index);
}

} // namespace refdev
