// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INT8GEMM_PORTABLE_HPP
#define KOKKOSOZAKI_INT8GEMM_PORTABLE_HPP

#include "../../src/impl/KokkosOzaki_KokkosCompat.hpp"
#include "../../src/impl/KokkosOzaki_Labels.hpp"
#include "../KokkosOzaki_Int8Gemm.hpp"

namespace KokkosOzaki::Impl {

struct PortableInt8Functor {
  PlaneGeometry g;
  std::int64_t rows;  // m rounded up to 16: the rows of the padding become zeros
  const std::int8_t* rA;
  const std::int8_t* rB;
  std::int32_t* P;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index % rows, rest = index / rows;
    const std::int64_t j = rest % g.n, p = rest / g.n;
    const std::int8_t* a = rA + p * g.stride_a + i * g.lda;
    const std::int8_t* b = rB + p * g.stride_b + j * g.ldb;
    std::int32_t* out = P + p * g.stride_p + j * g.ldp + i;
    std::int32_t sum = accumulate && i < g.m ? *out : 0;
    if (i < g.m)
      for (std::int64_t l = 0; l < g.k; ++l) sum += a[l] * b[l];
    *out = sum;
  }
};

/// \brief Plain Kokkos kernel for any execution space, one entry of one product per index: the reference of
/// the others.
template <class ExecutionSpace>
class PortableInt8Gemm final : public Int8Gemm<ExecutionSpace> {
 public:
  const char* name() const override { return "portable"; }

  void run(const ExecutionSpace& exec, const PlaneGeometry& geometry, const std::int8_t* rA,
           const std::int8_t* rB, std::int32_t* P, bool accumulate, void*) override {
    const std::int64_t rows = (geometry.m + 15) / 16 * 16;
    Kokkos::parallel_for(Labels::multiply_portable,
                         Range<ExecutionSpace>(exec, 0, rows * geometry.n * geometry.count),
                         PortableInt8Functor{geometry, rows, rA, rB, P, accumulate});
  }
};

}  // namespace KokkosOzaki::Impl

#endif
