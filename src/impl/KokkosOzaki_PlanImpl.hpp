// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_PLANIMPL_HPP
#define KOKKOSOZAKI_PLANIMPL_HPP

#include <algorithm>
#include <memory>
#include <optional>

#include "../KokkosOzaki_GemmPlan.hpp"
#include "../../backends/KokkosOzaki_Int8Gemm.hpp"
#include "../../backends/native/KokkosOzaki_NativeGemm.hpp"
#include "KokkosOzaki_Moduli.hpp"
#include "KokkosOzaki_Planes.hpp"
#include "KokkosOzaki_Workspace.hpp"

namespace KokkosOzaki::Impl {

/// \brief What a call needs besides its sizes: engine, constants, leaf functions, memory. One call at a time.
template <class ExecutionSpace>
struct Context {
  using MemorySpace = typename ExecutionSpace::memory_space;

  explicit Context(const char* backend);

  /// Makes a workspace at least this large.
  /// \throws WorkspaceError the old one is kept
  static void reserve(Kokkos::View<char*, MemorySpace>& memory, std::size_t bytes);
  void reserve(std::size_t bytes) { reserve(workspace, bytes); }

  std::unique_ptr<Int8Gemm<ExecutionSpace>> engine;
  NativeGemm<ExecutionSpace> native;  // prepared where a call may need it
  const StageKernels* kernels;
  Kokkos::View<ModuliTable*, MemorySpace> tables;  // s = 2 .. 20
  Kokkos::View<Control, MemorySpace> control;
  Kokkos::View<char*, MemorySpace> workspace;
  Kokkos::View<char*, MemorySpace> kept;  // of a product whose number of moduli is chosen from the data
};

/// \brief What is known of the vectors of one operand before the call, in the memory of the space. Null: not known.
struct KnownVectors {
  const std::int32_t* exponent = nullptr;  // with square_sum: the statistics
  const std::uint64_t* square_sum = nullptr;
  const std::uint64_t* sum = nullptr;
  const std::int8_t* quantised = nullptr;  // plane of the accurate bound
  const std::int8_t* residues = nullptr;   // planes of all moduli with the exponents of the fast bound
  std::int64_t ld = 0, plane_stride = 0;   // of these planes, which hold all positions
};

/// \brief The statistics of both operands, as far as they are not known; the columns' behind the rows'.
/// \param chunks, records  scratch for so many chunk records, at least those of one vector: vectors are taken as many
///   at once as fit
/// \param sum  may be null
template <class ExecutionSpace, class RowElement, class ColElement>
void operand_statistics(const ExecutionSpace& exec, const StageKernels* kernels,
                        const VectorSet<RowElement>& rows, const VectorSet<ColElement>& cols,
                        const KnownVectors& known_rows, const KnownVectors& known_cols,
                        ChunkStatistics* chunks, std::int64_t records, std::int32_t* exponent,
                        std::uint64_t* square_sum, Control* control, std::uint64_t* sum = nullptr) {
  const std::int64_t at_once = records / chunks_of(rows.length);
  if (known_rows.exponent == nullptr && known_cols.exponent == nullptr && rows.count + cols.count <= at_once)
    return statistics(exec, kernels, rows, cols, chunks, exponent, square_sum, control, sum);
  const auto of_side = [&](const auto& vectors, const KnownVectors& known, std::int64_t offset) {
    const auto sum_at = [&](std::int64_t v) { return sum != nullptr ? sum + v : nullptr; };
    if (known.exponent != nullptr)
      return adopt_statistics(exec, vectors.count, known.exponent, known.square_sum, known.sum,
                              exponent + offset, square_sum + offset, control, sum_at(offset));
    for (std::int64_t i = 0; i < vectors.count; i += at_once)
      statistics(exec, kernels, part(vectors, i, std::min(at_once, vectors.count - i)), chunks,
                 exponent + offset + i, square_sum + offset + i, control, sum_at(offset + i));
  };
  of_side(rows, known_rows, 0);
  of_side(cols, known_cols, rows.count);
}

/// \brief The steps of one product, or of a batch of products: sizes, number of moduli, blocks, workspace
/// layout.
template <class ExecutionSpace, class Scalar>
class PlanImpl {
 public:
  /// Sizes and options are checked already; k >= 1, m, n >= 1.
  /// \throws std::invalid_argument  too few moduli for this k, naming `function`
  /// \throws WorkspaceError         the cap is below the smallest block
  PlanImpl(const char* function, std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options,
           const Int8Gemm<ExecutionSpace>& engine, std::int64_t entries = 1);

  std::size_t workspace_bytes() const { return m_layout.total; }
  int num_moduli() const { return m_num_moduli; }
  GemmReport report(const Context<ExecutionSpace>& context) const;

  /// \brief The table of contents of the method.
  /// \param a, b rows of op(A) and columns of op(B); of a batch, with those of C, at most as many entries as
  /// one block has
  /// \param known_a, known_b  not of a batch
  template <class AElement, class BElement>
  void execute(const ExecutionSpace& exec, Context<ExecutionSpace>& context, const Scalar& alpha,
               const VectorSet<AElement>& a, const VectorSet<BElement>& b, const Scalar& beta,
               const MatrixRef<Scalar>& C, void* buffer, const KnownVectors& known_a = {},
               const KnownVectors& known_b = {}) {
    // The method is symmetric: a row-major C is the transposed product, with the same bits.
    if (C.row_stride > C.col_stride)
      execute_turned(exec, context, alpha, b, a, beta, C.transposed(), true, buffer, known_b, known_a);
    else
      execute_turned(exec, context, alpha, a, b, beta, C, false, buffer, known_a, known_b);
  }

  /// \brief C_e := alpha op(A)_e op(B)_e + beta C_e for all entries, in blocks.
  /// \param a, b op(A) and the transpose of op(B); pointers of all three in host memory
  template <class AElement, class BElement>
  void execute_batch(const ExecutionSpace& exec, Context<ExecutionSpace>& context, const Scalar& alpha,
                     const MatrixRef<const AElement>& a, const MatrixRef<const BElement>& b,
                     const Scalar& beta, const MatrixRef<Scalar>& C, void* buffer);

 private:
  static constexpr int parts = parts_of_v<Scalar>;        // planes of residues of C per modulus
  static constexpr int products = products_of_v<Scalar>;  // INT8 products per modulus

  /// \param turned  the rows are the columns of op(B)
  template <class RowElement, class ColElement>
  void execute_turned(const ExecutionSpace& exec, Context<ExecutionSpace>& context, const Scalar& alpha,
                      const VectorSet<RowElement>& rows, const VectorSet<ColElement>& cols,
                      const Scalar& beta, const MatrixRef<Scalar>& out, bool turned, void* buffer,
                      const KnownVectors& known_rows, const KnownVectors& known_cols);

  /// The inner dimension as guards and limits count it: real products in one entry of C.
  std::int64_t terms() const { return parts * m_k; }
  static constexpr bool is_single = std::is_same_v<RealOf<Scalar>, float>;
  static constexpr int quantised_unit = is_complex_v<Scalar> ? 89 : 127;

  Blocking choose_blocking(const Int8Gemm<ExecutionSpace>& engine, std::size_t cap, int group,
                           std::int64_t entries) const;
  /// Entries of a block of the batch; 1: every entry is a product of its own.
  std::int64_t choose_entries(const Int8Gemm<ExecutionSpace>& engine, std::size_t cap, Blocking whole,
                              std::int64_t entries) const;
  /// Whether there is one pass over the products of all moduli, reduction and reconstruction together,
  /// without Y.
  bool is_fused(const Blocking& blocking) const;
  /// Planes of INT32 products that are stored at the same time; 0: the engine reduces.
  int product_planes(const Blocking& blocking) const;
  WorkspaceLayout layout(const Int8Gemm<ExecutionSpace>& engine, const Blocking& blocking) const;

  std::int64_t m_m, m_n, m_k;
  int m_num_moduli;
  bool m_given;     // by the caller
  bool m_accurate;  // the accurate bound applies to these sizes
  bool m_toward_zero;
  bool m_engine_reduces;
  Blocking m_blocking;
  WorkspaceLayout m_layout;
  std::optional<ExecutionSpace> m_last_exec;  // none before the first execute
};

/// C := beta C, of a batch for all entries; pointers in the memory of `exec`.
template <class ExecutionSpace, class Scalar>
void apply_beta(const ExecutionSpace& exec, const Scalar& beta, const MatrixRef<Scalar>& C);

/// The same with pointers in host memory; `buffer` has room for them.
template <class ExecutionSpace, class Scalar>
void apply_beta_to_array(const ExecutionSpace& exec, const Scalar& beta, MatrixRef<Scalar> C, void* buffer);

/// X(SPACE, SCALAR, A, B) for every scalar with every type of its operands.
#define KOKKOSOZAKI_FOR_EACH_MIX(X, SPACE)                                            \
  X(SPACE, float, float, float)                                                       \
  X(SPACE, double, double, double)                                                    \
  X(SPACE, double, double, float)                                                     \
  X(SPACE, double, float, double)                                                     \
  X(SPACE, double, float, float)                                                      \
  X(SPACE, Kokkos::complex<float>, Kokkos::complex<float>, Kokkos::complex<float>)    \
  X(SPACE, Kokkos::complex<double>, Kokkos::complex<double>, Kokkos::complex<double>) \
  X(SPACE, Kokkos::complex<double>, Kokkos::complex<double>, Kokkos::complex<float>)  \
  X(SPACE, Kokkos::complex<double>, Kokkos::complex<float>, Kokkos::complex<double>)  \
  X(SPACE, Kokkos::complex<double>, Kokkos::complex<float>, Kokkos::complex<float>)

}  // namespace KokkosOzaki::Impl

#endif
