// Everything that depends on the version of PyTorch stands here. The rest of the backend includes this file and
// no version number. Supported: 2.13 and newer; today those need no difference in C++.
#pragma once

#include <torch/headeronly/version.h>

#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 13)
#error "torch_refdev needs PyTorch 2.13 or newer"
#endif
