// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_HOSTKERNELS_HPP
#define KOKKOSOZAKI_HOSTKERNELS_HPP

#include <cstddef>
#include <cstdint>

// Also included by translation units that are compiled for one instruction set: no Kokkos and no STL
// templates here, whose inline functions the linker could pick for every CPU.

namespace KokkosOzaki::Impl {

/// \brief A rectangle of one product: p[j * ldp + i] (+)= sum_l a[i * lda + l] * b[j * ldb + l].
///
/// Alignment and padding as in PlaneGeometry: a, b and p lie on 64-byte boundaries; rows and depth are padded
/// sizes.
struct HostTile {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int32_t* p;
  std::int64_t lda, ldb, ldp;
  std::int64_t rows;   // multiple of 16, at most HostKernelSet::tile_rows
  std::int64_t cols;   // any; columns up to the next multiple of 16 may be read and written
  std::int64_t depth;  // multiple of 64
  bool accumulate;
};

/// The kernels for one instruction set.
struct HostKernelSet {
  const char* name;
  void (*multiply_tile)(const HostTile&);
  std::int64_t tile_rows, tile_cols;  // shape for large products; multiples of 16
};

/// Number of kernel sets that are built and that this CPU and its operating system can run; at least 1.
int host_kernel_set_count();

/// Usable set number `index`, fastest first.
const HostKernelSet& host_kernel_set(int index);

/// The usable set of that name, the fastest one for a null name, or null.
const HostKernelSet* find_host_kernel_set(const char* name);

// Each is defined in the translation unit of its instruction set, if that is built.
void multiply_tile_portable(const HostTile&);
void multiply_tile_avx2(const HostTile&);
void multiply_tile_avxvnni(const HostTile&);
void multiply_tile_avx512vnni(const HostTile&);
void multiply_tile_amx(const HostTile&);

}  // namespace KokkosOzaki::Impl

#endif
