// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// operator new and delete on page-locked memory, for the tests on a device; see SharedMemory.hpp.

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "SharedMemory.hpp"

// nvcc would make functions of the device out of the operators.
#if !defined(__CUDA_ARCH__)

namespace KokkosOzaki::Testing {
namespace {

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

[[noreturn]] void give_up(const char* what, std::size_t bytes) {
  std::fprintf(stderr, "FAILED: %s (%zu bytes)\n", what, bytes);
  std::abort();
}

/// \brief Blocks of powers of two, one list of free ones for each size, cut from pieces of one range of
/// addresses that are page-locked as they are needed. Nothing is given back before the end of the process.
///
/// A device writes past an object unnoticed here, also by tools that watch device memory: the bytes behind an
/// object are filled when it is made and looked at when it is released.
class PinnedHeap {
 public:
  void open() {
    void* range = mmap(nullptr, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) give_up("no range of addresses for page-locked memory", range_bytes);
    m_first = m_next = m_end = static_cast<char*>(range);
    m_is_open = true;
  }

  void* allocate(std::size_t bytes, std::size_t alignment) {
    // CUDA may ask for memory while it locks some.
    if (!m_is_open || is_growing) return allocate_unpinned(bytes, alignment);
    if (alignment < block_alignment) alignment = block_alignment;
    if (bytes > range_bytes / 4) return nullptr;
    const std::size_t needed = bytes + sizeof(Header) + alignment + least_guard;
    int order = least_order;
    while (std::size_t{1} << order < needed) ++order;

    char* const block = take(order);
    if (block == nullptr) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    char* const object = block + (round_up(address + sizeof(Header), alignment) - address);
    new (object - sizeof(Header)) Header{intact, bytes, block, order};
    std::memset(object + bytes, guard_byte, guard_bytes(object, bytes, block, order));
    return object;
  }

  void release(void* pointer) {
    if (!owns(pointer)) return std::free(pointer);
    char* const object = static_cast<char*>(pointer);
    auto* const header = reinterpret_cast<Header*>(object - sizeof(Header));
    if (header->state != intact)
      give_up("memory in front of an object was overwritten, or released twice", 0);
    const std::size_t guards = guard_bytes(object, header->bytes, header->block, header->order);
    for (std::size_t i = 0; i < guards; ++i)
      if (static_cast<unsigned char>(object[header->bytes + i]) != guard_byte)
        give_up("memory behind an object was overwritten", header->bytes);
    header->state = 0;
    char* const block = header->block;
    const int order = header->order;
    const std::lock_guard<std::mutex> lock(m_mutex);
    m_free[order] = new (block) FreeBlock{m_free[order]};
  }

 private:
  struct Header {
    std::uint64_t state;
    std::size_t bytes;
    char* block;
    int order;
  };
  struct FreeBlock {
    FreeBlock* next;
  };

  static constexpr std::size_t range_bytes = std::size_t{1} << 38;
  static constexpr std::size_t piece_bytes = std::size_t{1} << 26;
  static constexpr std::size_t block_alignment = 64;  // what Kokkos gives its Views
  static constexpr std::size_t least_guard = 16, most_guard = 256;
  static constexpr std::uint64_t intact = 0x6B6F6B6B6F735F5Au;
  static constexpr unsigned char guard_byte = 0xA7;
  static constexpr int least_order = 8, orders = 39;

  static std::size_t guard_bytes(const char* object, std::size_t bytes, const char* block, int order) {
    const std::size_t rest = (std::size_t{1} << order) - static_cast<std::size_t>(object - block) - bytes;
    return rest < most_guard ? rest : most_guard;
  }

  static void* allocate_unpinned(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) bytes = 1;
    if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
    return std::aligned_alloc(alignment, round_up(bytes, alignment));
  }

  bool owns(const void* pointer) const {
    if (!m_is_open) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer),
               first = reinterpret_cast<std::uintptr_t>(m_first);
    return address >= first && address < first + range_bytes;
  }

  char* take(int order) {
    const std::size_t bytes = std::size_t{1} << order;
    const std::lock_guard<std::mutex> lock(m_mutex);
    if (FreeBlock* block = m_free[order]; block != nullptr) {
      m_free[order] = block->next;
      return reinterpret_cast<char*>(block);
    }
    // An object lies in one piece: copies do not cross from one to the next.
    if (static_cast<std::size_t>(m_end - m_next) < bytes && !grow(bytes < piece_bytes ? piece_bytes : bytes))
      return nullptr;
    char* const block = m_next;
    m_next += bytes;
    return block;
  }

  bool grow(std::size_t bytes) {
    if (bytes > range_bytes - static_cast<std::size_t>(m_end - m_first)) return false;
    is_growing = true;
    // Also while a stream is being captured: nothing here touches a stream.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const bool is_usable = mprotect(m_end, bytes, PROT_READ | PROT_WRITE) == 0;
    const cudaError_t status =
        cudaHostRegister(m_end, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    cudaThreadExchangeStreamCaptureMode(&mode);
    is_growing = false;
    // After the end of CUDA there are no kernels any more.
    if (!is_usable || (status != cudaSuccess && status != cudaErrorCudartUnloading))
      give_up("memory could not be page-locked", bytes);
    m_next = m_end;
    m_end += bytes;
    return true;
  }

  static thread_local bool is_growing;

  std::mutex m_mutex;
  std::atomic<bool> m_is_open{false};
  char *m_first = nullptr, *m_next = nullptr, *m_end = nullptr;  // m_next .. m_end: locked, never used
  FreeBlock* m_free[orders] = {};
};

thread_local bool PinnedHeap::is_growing = false;

// Made before everything else and never destroyed.
PinnedHeap heap;

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* pointer = heap.allocate(bytes, alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

constexpr std::size_t default_alignment = alignof(std::max_align_t);

}  // namespace

void share_heap_with_device() {
  // Where the pointers of the host mean something else on the device the tests cannot work.
  int device = 0, same_pointers = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&same_pointers, cudaDevAttrCanUseHostPointerForRegisteredMem, device) !=
          cudaSuccess ||
      same_pointers == 0)
    give_up("this device cannot use the pointers of page-locked memory of the host", 0);
  heap.open();
}

}  // namespace KokkosOzaki::Testing

using KokkosOzaki::Testing::allocate_or_throw;
using KokkosOzaki::Testing::default_alignment;
using KokkosOzaki::Testing::heap;

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, default_alignment);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, default_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return heap.allocate(bytes, default_alignment);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return heap.allocate(bytes, default_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return heap.allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return heap.allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* pointer) noexcept {
  heap.release(pointer);
}
void operator delete[](void* pointer) noexcept {
  heap.release(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept {
  heap.release(pointer);
}
void operator delete[](void* pointer, std::size_t) noexcept {
  heap.release(pointer);
}
void operator delete(void* pointer, std::align_val_t) noexcept {
  heap.release(pointer);
}
void operator delete[](void* pointer, std::align_val_t) noexcept {
  heap.release(pointer);
}
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept {
  heap.release(pointer);
}
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept {
  heap.release(pointer);
}
void operator delete(void* pointer, const std::nothrow_t&) noexcept {
  heap.release(pointer);
}
void operator delete[](void* pointer, const std::nothrow_t&) noexcept {
  heap.release(pointer);
}
void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  heap.release(pointer);
}
void operator delete[](void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  heap.release(pointer);
}

#endif
