// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INT8GEMM_WGMMA_HPP
#define KOKKOSOZAKI_INT8GEMM_WGMMA_HPP

#include "../../src/KokkosOzaki_Error.hpp"
#include "../../src/impl/KokkosOzaki_KokkosCompat.hpp"
#include "../KokkosOzaki_Int8Gemm.hpp"
#include "KokkosOzaki_WgmmaKernels.hpp"
#include "KokkosOzaki_config.hpp"

#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
#include "../cublas/KokkosOzaki_Int8Gemm_Cublas.hpp"
#endif

namespace KokkosOzaki::Impl {

/// \brief INT8 products by own kernels for compute capability 9.0, which also reduce: one launch for all
/// moduli, INT8 residues out. Where cuBLAS is built, products of few rows or columns, which would leave most
/// of a tile empty, are not reduced on the way: their positions are shared out among the processors, or,
/// where there are too many tiles or too few positions for that, they go through cuBLAS.
class WgmmaInt8Gemm final : public Int8Gemm<Kokkos::Cuda> {
 public:
  const char* name() const override { return "wgmma"; }
  bool can_reduce(const PlaneGeometry& g) const override { return !is_thin(g); }

#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
  void prepare() override {
    m_cublas.prepare();
  }
  /// Always that of cuBLAS: blocks of a product may be thin where the whole is not.
  std::size_t workspace_bytes(const PlaneGeometry& g) const override {
    return m_cublas.workspace_bytes(g);
  }
  std::int64_t zero_padding(const PlaneGeometry& g) const override {
    return is_thin(g) ? m_cublas.zero_padding(g) : Int8Gemm::zero_padding(g);
  }
#endif

  bool can_skip(const PlaneGeometry& g) const override {
    return !is_thin(g);
  }

  void run(const Kokkos::Cuda& exec, const PlaneGeometry& g, const std::int8_t* rA, const std::int8_t* rB,
           std::int32_t* P, bool accumulate, void* workspace) override {
    run_unless(nullptr, exec, g, rA, rB, P, accumulate, workspace);
  }

  void run_unless(const std::int32_t* skip, const Kokkos::Cuda& exec, const PlaneGeometry& g,
                  const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P, bool accumulate,
                  [[maybe_unused]] void* workspace) override {
    int status = 0;
    if (skip == nullptr && !wgmma_fits(g) && wgmma_adds_parts(exec.cuda_device(), g))
      return check(
          wgmma_multiply_parts(exec.cuda_stream(), exec.cuda_device(), g, rA, rB, P, accumulate, status),
          status, g);
#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
    if (is_thin(g)) return m_cublas.run(exec, g, rA, rB, P, accumulate, workspace);
#endif
    check(wgmma_multiply(exec.cuda_stream(), exec.cuda_device(), g, rA, rB, P, accumulate, skip, status),
          status, g);
  }

  void run_reduced(const Kokkos::Cuda& exec, const PlaneGeometry& g, const std::int8_t* rA,
                   const std::int8_t* rB, const ModuliTable* table, int first, std::int8_t* Y,
                   bool accumulate, void*) override {
    int status = 0;
    check(wgmma_multiply_reduce(exec.cuda_stream(), exec.cuda_device(), g, rA, rB, table, first, Y,
                                accumulate, status),
          status, g);
  }

 private:
#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
  static bool is_thin(const PlaneGeometry& g) {
    return !wgmma_fits(g);
  }

  CublasInt8Gemm m_cublas;
#else
  static bool is_thin(const PlaneGeometry&) {
    return false;
  }
#endif

  static void check(const char* failed, int status, const PlaneGeometry& g) {
    if (failed == nullptr) return;
    throw BackendError(std::string("KokkosOzaki: ") + failed + " failed with status " +
                       std::to_string(status) + " (m=" + std::to_string(g.m) + ", n=" + std::to_string(g.n) +
                       ", k=" + std::to_string(g.k) + ", planes=" + std::to_string(g.count) +
                       "); C is unspecified.");
  }
};

}  // namespace KokkosOzaki::Impl

#endif
