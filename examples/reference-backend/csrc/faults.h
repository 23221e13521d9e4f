// Faults that real devices and drivers have, to be switched on in tests of whatever has to survive them.
//
//   REFDEV_FAULT=KIND:OPERATOR[,KIND:OPERATOR...]     for example  REFDEV_FAULT=segfault:aten::mul
//
//   segfault  the process dies of SIGSEGV inside the operator
//   hang      the operator never returns
//   poison    the operator fails, and from then on so does all work on that device, until the process ends
//   wrong     the operator's result has one wrong element, and nobody says so
//   oom       the operator finds no memory: torch.OutOfMemoryError; later ones are fine
//
// OPERATOR is a name as in torch.refdev.fallback_counts(), with its overload or without: aten::mul means aten::mul.out
// too. An operator that the dispatcher takes apart never arrives here: torch.mul arrives as aten::mul.out. `wrong` needs
// an operator that falls back to the CPU; the other kinds also know the backend's own kernels. The variable is read
// once, when the backend is loaded; text that cannot be understood is an error there.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace refdev::faults {

// What is switched on, as `KIND:OPERATOR`. Throws if REFDEV_FAULT cannot be understood.
std::vector<std::string> active();

// To be called first by every operator: fails if the device is poisoned, and has the faults switched on for `name`.
void on_entry(const std::string& name, c10::Device device);

// Whether `name` has to spoil its result.
bool spoils(const std::string& name);

// Throws if an earlier operator poisoned the device.
void require_healthy(c10::DeviceIndex device);

} // namespace refdev::faults
