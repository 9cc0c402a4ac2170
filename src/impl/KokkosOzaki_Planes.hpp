// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_PLANES_HPP
#define KOKKOSOZAKI_PLANES_HPP

#include <cstddef>
#include <cstdint>

#include "../../backends/KokkosOzaki_Int8Gemm.hpp"
#include "KokkosOzaki_MatrixRef.hpp"
#include "KokkosOzaki_Workspace.hpp"

namespace KokkosOzaki::Impl {

/// The first 64-byte boundary of a workspace.
inline char* aligned(void* buffer) {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(buffer) + 63) / 64 * 64);
}

template <class T>
T* at(char* base, std::size_t offset) {
  return reinterpret_cast<T*>(base + offset);
}

/// The vectors first .. first+count-1 at the positions position .. position+length-1. Those of a batch are not
/// cut.
template <class Element>
VectorSet<Element> part(const VectorSet<Element>& v, std::int64_t first, std::int64_t count,
                        std::int64_t position, std::int64_t length) {
  if (v.pitch != 0) return v;
  return {v.at(first, position), count, length, v.vector_stride, v.position_stride, v.conj};
}

template <class Element>
VectorSet<Element> part(const VectorSet<Element>& v, std::int64_t first, std::int64_t count) {
  return part(v, first, count, 0, v.length);
}

/// Sizes and places of `count` planes for one block of C and of k.
inline PlaneGeometry block_geometry(std::int64_t m, std::int64_t n, std::int64_t k, int count) {
  PlaneGeometry g;
  g.m = m, g.n = n, g.k = k, g.count = count;
  g.lda = g.ldb = round_up(k, k_padding);
  g.ldp = round_up(m, vector_padding);
  g.stride_a = g.lda * round_up(m, vector_padding);
  g.stride_b = g.ldb * round_up(n, vector_padding);
  g.stride_p = g.ldp * round_up(n, vector_padding);
  return g;
}

}  // namespace KokkosOzaki::Impl

#endif
