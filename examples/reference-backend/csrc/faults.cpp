#include "faults.h"

#include "allocator.h"
#include "compat.h"
#include "device.h"

#include <array>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <thread>

namespace refdev::faults {
namespace {

struct Fault {
  std::string kind;
  std::string op;
};

std::vector<Fault> read() {
  const char* text = std::getenv("REFDEV_FAULT");
  std::stringstream parts(text == nullptr ? "" : text);
  std::vector<Fault> found;
  for (std::string part; std::getline(parts, part, ',');) {
    const auto colon = part.find(':');
    const auto kind = part.substr(0, colon);
    const bool known = kind == "segfault" || kind == "hang" || kind == "poison" || kind == "wrong" || kind == "oom";
    TORCH_CHECK(
        known && colon != std::string::npos && colon + 1 < part.size(),
        "REFDEV_FAULT: '", part, "' is not KIND:OPERATOR with KIND one of segfault, hang, poison, wrong, oom");
    found.push_back({kind, part.substr(colon + 1)});
  }
  return found;
}

const std::vector<Fault>& switched_on() {
  static const std::vector<Fault> faults = read();
  return faults;
}

// aten::mul names aten::mul and all its overloads, such as aten::mul.out, but not aten::mul_.
bool names(const std::string& pattern, const std::string& name) {
  return name == pattern || (name.size() > pattern.size() && name.compare(0, pattern.size() + 1, pattern + '.') == 0);
}

std::mutex mutex;
std::array<std::string, kDeviceCount> poisoned_by; // empty: healthy

void fail(const std::string& kind, const std::string& name, c10::DeviceIndex device) {
  if (kind == "segfault") {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  } else if (kind == "hang") {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
  } else if (kind == "poison") {
    const std::lock_guard<std::mutex> lock(mutex);
    poisoned_by[device] = name;
  } else if (kind == "oom") {
    throw_out_of_memory(device, size_t{1} << 40);
  }
}

} // namespace

std::vector<std::string> active() {
  std::vector<std::string> shown;
  for (const auto& fault : switched_on()) {
    shown.push_back(fault.kind + ':' + fault.op);
  }
  return shown;
}

void require_healthy(c10::DeviceIndex device) {
  const std::lock_guard<std::mutex> lock(mutex);
  TORCH_CHECK(
      poisoned_by[device].empty(),
      "refdev:", static_cast<int>(device), " is in an error state since ", poisoned_by[device],
      "; only a new process can use it again");
}

void on_entry(const std::string& name, c10::Device device) {
  require_healthy(device.index());
  for (const auto& fault : switched_on()) {
    if (names(fault.op, name)) {
      fail(fault.kind, name, device.index());
    }
  }
  require_healthy(device.index());
}

bool spoils(const std::string& name) {
  for (const auto& fault : switched_on()) {
    if (fault.kind == "wrong" && names(fault.op, name)) {
      return true;
    }
  }
  return false;
}

} // namespace refdev::faults
