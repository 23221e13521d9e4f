// Changes of a storage's size.
#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/core/Storage.h>

#include <algorithm>

namespace refdev {

// Gives a storage new memory of `bytes`, with as much of the old content as fits.
inline void resize_storage(const c10::Storage& storage, size_t bytes) {
  auto* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "this storage cannot be resized: somebody else owns its memory");
  const c10::DeviceGuard guard(storage.device());
  auto fresh = impl->allocator()->allocate(bytes);
  impl->allocator()->copy_data(fresh.mutable_get(), storage.data(), std::min(bytes, storage.nbytes()));
  impl->set_data_ptr_noswap(std::move(fresh));
  impl->set_nbytes(bytes);
}

} // namespace refdev
