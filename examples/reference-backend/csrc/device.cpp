// The device itself, as one translation unit: compiled file by file, each of these would read the same PyTorch
// headers again, which takes two seconds a file.
#include "allocator.cpp"
#include "faults.cpp"
#include "guard.cpp"
#include "hooks.cpp"
#include "kernels.cpp"
