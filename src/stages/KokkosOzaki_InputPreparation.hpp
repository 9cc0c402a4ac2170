// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INPUTPREPARATION_HPP
#define KOKKOSOZAKI_INPUTPREPARATION_HPP

#include <string>

#include "../impl/KokkosOzaki_Labels.hpp"
#include "../impl/KokkosOzaki_Workspace.hpp"
#include "../KokkosOzaki_GemmOptions.hpp"
#include "KokkosOzaki_Multiply.hpp"
#include "KokkosOzaki_Scale.hpp"
#include "KokkosOzaki_SplitResidues.hpp"
#include "KokkosOzaki_Statistics.hpp"

namespace KokkosOzaki::Impl {

/// \brief The stages before the INT8 products on buffers of their own, residues in one step and in two: for
/// comparison in tests and benchmarks. One block of C and of k, k <= max_k_block.
template <class ExecutionSpace>
class InputPreparation {
  using MemorySpace = typename ExecutionSpace::memory_space;
  template <class T>
  using Buffer = Kokkos::View<T*, MemorySpace>;

 public:
  /// \param rows, cols  in the memory of the space
  InputPreparation(const StageKernels* kernels, Int8Gemm<ExecutionSpace>& engine,
                   const VectorSet<double>& rows, const VectorSet<double>& cols, int num_moduli, Bound bound,
                   bool toward_zero)
      : m_kernels(kernels),
        m_engine(engine),
        m_rows(rows),
        m_cols(cols),
        m_num_moduli(num_moduli),
        m_accurate(bound == Bound::accurate && guard_accurate(num_moduli, rows.length) >= 2),
        m_toward_zero(toward_zero) {
    m_geometry.m = rows.count, m_geometry.n = cols.count, m_geometry.k = rows.length;
    m_geometry.lda = m_geometry.ldb = round_up(rows.length, k_padding);
    m_geometry.ldp = round_up(rows.count, vector_padding);
    m_geometry.stride_a = m_geometry.lda * m_geometry.ldp;
    m_geometry.stride_b = m_geometry.ldb * round_up(cols.count, vector_padding);
    m_geometry.stride_p = m_geometry.ldp * round_up(cols.count, vector_padding);
    const std::int64_t vectors = rows.count + cols.count;
    m_exponent = make<std::int32_t>("exponent", vectors);
    m_square_sum = make<std::uint64_t>("square_sum", vectors);
    m_alpha = make<std::int32_t>("alpha", vectors);
    m_candidate = make<std::int32_t>("candidate", vectors);
    m_maxima = make<std::int32_t>("maxima", vectors);
    m_chunks = make<ChunkStatistics>("chunks", vectors * chunks_of(rows.length));
    m_control = make<Control>("control", 1);
    m_table = make<ModuliTable>("table", 1);
    const std::int64_t entries = m_geometry.stride_a + m_geometry.stride_b;
    m_planes = make<std::int8_t>("planes", entries * num_moduli);
    m_low = make<std::uint64_t>("low", entries);
    if (num_moduli > 16) m_high = make<std::int32_t>("high", entries);
    if (m_accurate) {
      m_product = make<std::int32_t>("bound_product", m_geometry.stride_p);
      m_engine_workspace =
          make<char>("engine", static_cast<std::int64_t>(engine.workspace_bytes(m_geometry)));
    }
    Kokkos::deep_copy(m_table, Kokkos::View<const ModuliTable*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                                   moduli_tables() + (num_moduli - min_moduli), 1));
  }

  /// Statistics and scaling exponents, as PlanImpl::execute has them.
  void exponents(const ExecutionSpace& exec) {
    const std::int64_t m = m_rows.count, n = m_cols.count, k = m_rows.length;
    std::int32_t* exponent = m_exponent.data();
    std::int32_t* alpha = m_alpha.data();
    std::int32_t* candidate = m_candidate.data();
    std::int32_t* maxima = m_maxima.data();
    reset_control(exec, m_control.data());
    statistics(exec, m_kernels, m_rows, m_cols, m_chunks.data(), exponent, m_square_sum.data(),
               m_control.data());
    scale_fast(exec, fast_budget(m_num_moduli, k), m + n, exponent, m_square_sum.data(), alpha);
    if (!m_accurate) return;
    reset_maxima(exec, m + n, maxima);
    std::int8_t* rows = m_planes.data();
    std::int8_t* cols = rows + m_geometry.stride_a;
    const PlaneGeometry& g = m_geometry;
    quantize(exec, m_kernels, m_rows, exponent, rows, g.lda, g.stride_a / g.lda);
    quantize(exec, m_kernels, m_cols, exponent + m, cols, g.ldb, g.stride_b / g.ldb);
    multiply(exec, m_engine, g, rows, cols, m_product.data(), false, m_engine_workspace.data(),
             Labels::scale);
    bound_maxima(exec, m_product.data(), m, n, g.ldp, maxima, maxima + m);
    const Budget budget = accurate_budget(m_num_moduli, k);
    const int cap = scale_cap(m_num_moduli);
    scale_candidates(exec, budget, cap, n, m, exponent, maxima, alpha, candidate, m_control.data());
    scale_candidates(exec, budget, cap, m, n, exponent + m, maxima + m, alpha + m, candidate + m,
                     m_control.data());
    scale_choose(exec, m + n, candidate, m_control.data(), alpha);
  }

  /// Residues in one step: the library's form.
  void fused_residues(const ExecutionSpace& exec) {
    const SplitOperand rows = operand(true), cols = operand(false);
    residues(exec, m_kernels, {cols.vectors, cols.exponent, cols.alpha, cols.planes},
             {rows.vectors, rows.exponent, rows.alpha, rows.planes}, m_table.data(), m_num_moduli,
             m_toward_zero);
  }

  /// Residues in two steps; the first one.
  void split_integers(const ExecutionSpace& exec) {
    scaled_integers(exec, m_kernels, operand(false), operand(true), m_num_moduli, m_toward_zero);
  }
  void split_residues(const ExecutionSpace& exec) {
    stored_residues(exec, m_kernels, operand(false), operand(true), m_table.data(), m_num_moduli);
  }

  /// Of the rows, then of the columns.
  const Buffer<std::int32_t>& alpha() const { return m_alpha; }
  const Buffer<std::int8_t>& planes() const { return m_planes; }

 private:
  template <class T>
  static Buffer<T> make(const char* name, std::int64_t size) {
    return Buffer<T>(Kokkos::view_alloc(std::string(name), Kokkos::WithoutInitializing),
                     static_cast<std::size_t>(size));
  }

  SplitOperand operand(bool of_rows) const {
    const PlaneGeometry& g = m_geometry;
    const std::int64_t offset = of_rows ? 0 : m_rows.count, entries = of_rows ? 0 : g.stride_a;
    const std::int64_t stride = of_rows ? g.stride_a : g.stride_b, padded = stride / g.lda;
    std::int32_t* high = m_high.data();
    return {of_rows ? m_rows : m_cols,
            m_exponent.data() + offset,
            m_alpha.data() + offset,
            {m_low.data() + entries, high != nullptr ? high + entries : nullptr, g.lda, padded},
            {m_planes.data() + entries * m_num_moduli, stride, g.lda, padded}};
  }

  const StageKernels* m_kernels;
  Int8Gemm<ExecutionSpace>& m_engine;
  VectorSet<double> m_rows, m_cols;
  int m_num_moduli;
  bool m_accurate, m_toward_zero;
  PlaneGeometry m_geometry;
  Buffer<std::int32_t> m_exponent, m_alpha, m_candidate, m_maxima, m_product, m_high;
  Buffer<std::uint64_t> m_square_sum, m_low;
  Buffer<ChunkStatistics> m_chunks;
  Buffer<Control> m_control;
  Buffer<ModuliTable> m_table;
  Buffer<std::int8_t> m_planes;
  Buffer<char> m_engine_workspace;
};

}  // namespace KokkosOzaki::Impl

#endif
