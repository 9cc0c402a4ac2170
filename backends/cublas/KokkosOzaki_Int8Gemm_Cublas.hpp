// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INT8GEMM_CUBLAS_HPP
#define KOKKOSOZAKI_INT8GEMM_CUBLAS_HPP

#include <memory>

#include "../../src/impl/KokkosOzaki_KokkosCompat.hpp"
#include "../KokkosOzaki_Int8Gemm.hpp"

namespace KokkosOzaki::Impl {

/// \brief INT8 products by cuBLAS (INT8 tensor cores, INT32 accumulation).
///
/// A handle of its own, bound to the instance's stream and to the workspace that the plan hands over in every
/// run: no state of the process or of the caller's handles is touched. Sizes are passed padded, so that every
/// constraint of cuBLAS on m, n, k and leading dimensions holds for any shape.
class CublasInt8Gemm final : public Int8Gemm<Kokkos::Cuda> {
 public:
  CublasInt8Gemm();
  ~CublasInt8Gemm() override;

  const char* name() const override { return "cublas"; }
  void prepare() override;
  std::size_t workspace_bytes(const PlaneGeometry& geometry) const override;
  std::int64_t zero_padding(const PlaneGeometry& geometry) const override;
  void run(const Kokkos::Cuda& exec, const PlaneGeometry& geometry, const std::int8_t* rA,
           const std::int8_t* rB, std::int32_t* P, bool accumulate, void* workspace) override;

 private:
  struct Handle;
  std::unique_ptr<Handle> m_handle;
};

}  // namespace KokkosOzaki::Impl

#endif
