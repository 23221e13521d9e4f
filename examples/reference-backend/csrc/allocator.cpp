#include "allocator.h"

#include "compat.h"
#include "device.h"
#include "faults.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace refdev {
namespace {

struct Block {
  size_t bytes;
  c10::DeviceIndex device;
};

size_t initial_limit() {
  const char* text = std::getenv("REFDEV_MEMORY_LIMIT");
  return text == nullptr ? size_t{1} << 30 : std::strtoull(text, nullptr, 10);
}

// A DeviceAllocator is an Allocator that also answers torch.accelerator.memory_allocated() and its like.
class Allocator final : public c10::DeviceAllocator {
 public:
  Allocator() {
    limits_.fill(initial_limit());
  }

  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(kDeviceType, current_device);
    if (bytes == 0) {
      return {nullptr, device};
    }
    faults::require_healthy(device.index());
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& used = used_[device.index()];
    void* address = nullptr;
    if (used.current + bytes <= limits_[device.index()]) {
      address = std::malloc(bytes);
    }
    if (address == nullptr) {
      throw_out_of_memory(device.index(), bytes);
    }
    used.increase(bytes);
    blocks_[address] = {bytes, device.index()};
    return {address, address, &release, device};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }

  void copy_data(void* target, const void* source, size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }

  bool initialized() override {
    return true;
  }

  void emptyCache(c10::MempoolId_t) override {} // nothing is cached

  void recordStream(const c10::DataPtr&, c10::Stream) override {} // there is one stream

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0] = stats.reserved_bytes[0] = used_[device_index(device)];
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_[device_index(device)].reset_accumulated();
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_[device_index(device)].reset_peak();
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto limit = limits_[device_index(device)];
    const auto used = static_cast<size_t>(used_[device].current);
    return {limit > used ? limit - used : 0, limit};
  }

  void set_limit(c10::DeviceIndex device, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    limits_[device] = bytes;
  }

 private:
  static void release(void* address);

  std::mutex mutex_;
  std::array<size_t, kDeviceCount> limits_{};
  std::array<c10::CachingAllocator::Stat, kDeviceCount> used_{};
  std::unordered_map<void*, Block> blocks_;
};

// Never destroyed: tensors may outlive every static object.
Allocator& the_allocator() {
  static auto* const instance = new Allocator();
  return *instance;
}

void Allocator::release(void* address) {
  auto& self = the_allocator();
  const std::lock_guard<std::mutex> lock(self.mutex_);
  const auto block = self.blocks_.find(address);
  self.used_[block->second.device].decrease(block->second.bytes);
  self.blocks_.erase(block);
  std::free(address);
}

} // namespace

c10::Allocator* allocator() {
  return &the_allocator();
}

void set_memory_limit(c10::DeviceIndex device, size_t bytes) {
  the_allocator().set_limit(device_index(device), bytes);
}

void throw_out_of_memory(c10::DeviceIndex device, size_t wanted) {
  C10_THROW_ERROR(
      OutOfMemoryError,
      c10::str("refdev:", static_cast<int>(device), " is out of memory: no room for another ", wanted, " bytes"));
}

REGISTER_ALLOCATOR(kDeviceType, allocator())

} // namespace refdev
