// The device guard: how PyTorch asks for the current device, changes it, and waits for its work.
#include "compat.h"
#include "device.h"
#include "faults.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace refdev {
namespace {

// Each device has one stream, and an operator returns when its work is done; so there is never anything to wait for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDeviceType;
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return kDeviceCount;
  }

  c10::Device getDevice() const override {
    return {kDeviceType, current_device};
  }

  void setDevice(c10::Device device) const override {
    current_device = device_index(device.index());
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_device = device.index();
  }

  c10::Device exchangeDevice(c10::Device device) const override {
    const auto previous = getDevice();
    setDevice(device);
    return previous;
  }

  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, {kDeviceType, device_index(device.index())});
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return getStream(device);
  }

  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }

  bool queryStream(const c10::Stream&) const override {
    return true;
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    synchronizeDevice(stream.device_index());
  }

  void synchronizeDevice(const c10::DeviceIndex device) const override {
    faults::require_healthy(device_index(device));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

} // namespace
} // namespace refdev
