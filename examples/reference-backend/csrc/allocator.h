// The devices' memory. There is no hardware, so it comes from the host's malloc; each device has its own limit.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

namespace refdev {

c10::Allocator* allocator();

// How many bytes may be in use on a device at the same time: REFDEV_MEMORY_LIMIT, else 1 GiB.
void set_memory_limit(c10::DeviceIndex device, size_t bytes);

// Throws what Python sees as torch.OutOfMemoryError.
[[noreturn]] void throw_out_of_memory(c10::DeviceIndex device, size_t wanted);

} // namespace refdev
