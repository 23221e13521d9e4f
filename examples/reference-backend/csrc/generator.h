// Random numbers: one default generator per device, and as many others as users make.
#pragma once

#include <ATen/core/Generator.h>

namespace refdev {

const at::Generator& default_generator(c10::DeviceIndex device);

at::Generator new_generator(c10::DeviceIndex device);

// The generator of CPU random numbers inside one of the device's: a kernel that runs on the CPU draws from it.
at::Generator cpu_generator_of(const at::Generator& generator);

} // namespace refdev
