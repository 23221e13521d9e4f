// The hooks: what PyTorch asks about the accelerator. And the generator, which it gets through them.
#include "compat.h"
#include "device.h"
#include "generator.h"
#include "storage.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace refdev {
namespace {

// There is no hardware that could make random numbers, so each generator has one of PyTorch's CPU generators inside.
struct GeneratorImpl final : c10::GeneratorImpl {
  explicit GeneratorImpl(c10::DeviceIndex device)
      : c10::GeneratorImpl({kDeviceType, device}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu(at::detail::createCPUGenerator()) {}

  void set_current_seed(uint64_t seed) override {
    cpu.set_current_seed(seed);
  }

  uint64_t current_seed() const override {
    return cpu.current_seed();
  }

  uint64_t seed() override {
    return cpu.unsafeGetGeneratorImpl()->seed();
  }

  void set_offset(uint64_t offset) override {
    cpu.set_offset(offset); // refuses: CPU generators have none
  }

  uint64_t get_offset() const override {
    return cpu.get_offset();
  }

  void set_state(const c10::TensorImpl& state) override {
    cpu.unsafeGetGeneratorImpl()->set_state(state);
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return cpu.unsafeGetGeneratorImpl()->get_state();
  }

  GeneratorImpl* clone_impl() const override {
    auto* copy = new GeneratorImpl(device_.index());
    copy->cpu = cpu.clone();
    return copy;
  }

  at::Generator cpu;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }

  bool isAvailable() const override {
    return true;
  }

  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    return 0 <= device && device < kDeviceCount;
  }

  c10::DeviceIndex deviceCount() const override {
    return kDeviceCount;
  }

  c10::DeviceIndex getCurrentDevice() const override {
    return current_device;
  }

  void setCurrentDevice(c10::DeviceIndex device) const override {
    current_device = device_index(device);
  }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const auto previous = current_device;
    setCurrentDevice(device);
    return previous;
  }

  // For a negative index nothing changes: PyTorch calls it so where it does not know the device.
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device < 0 ? current_device : device);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }

  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return new_generator(device);
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

struct Registrar {
  Registrar() {
    at::RegisterPrivateUse1HooksInterface(new Hooks()); // PyTorch keeps it for ever
  }
} registrar;

} // namespace

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* const generators =
      new std::array<at::Generator, kDeviceCount>{new_generator(0), new_generator(1)};
  static_assert(kDeviceCount == 2);
  return (*generators)[device_index(device)];
}

at::Generator new_generator(c10::DeviceIndex device) {
  return at::make_generator<GeneratorImpl>(device_index(device));
}

at::Generator cpu_generator_of(const at::Generator& generator) {
  TORCH_CHECK(
      generator.device().type() == kDeviceType,
      "expected a generator of a refdev device, found one of ", generator.device());
  return generator.get<GeneratorImpl>()->cpu;
}

} // namespace refdev
