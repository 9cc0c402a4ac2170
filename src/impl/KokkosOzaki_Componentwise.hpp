// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_COMPONENTWISE_HPP
#define KOKKOSOZAKI_COMPONENTWISE_HPP

#include <algorithm>
#include <vector>

#include "KokkosOzaki_Certificate.hpp"
#include "KokkosOzaki_PlanImpl.hpp"

namespace KokkosOzaki::Impl {

inline constexpr const char* captured_selection =
    "the number of moduli is chosen from the data, for which the host has to wait, and the stream is being "
    "captured; "
    "give num_moduli or a normwise accuracy.";

/// \brief How a product gets the accuracy that was asked for.
struct Selection {
  int num_moduli = 0;
  std::int64_t exact_entries = 0;  // entries that no number of moduli certifies
  bool all_exact = false;          // too many of them: no entry is emulated
};

/// \brief A product whose number of moduli is chosen from the data, so that |C - exact| <= c u (|op(A)| |op(B)|)_ij
/// plus the final rounding (docs/accuracy.md, "Componentwise"). Entries for which no number of moduli can promise
/// that are computed exactly.
///
/// First select(), which waits for the device, then a plan with selection.num_moduli, then execute(). What select()
/// finds out lies in `kept`; `scratch` may be used again after it.
template <class ExecutionSpace, class Scalar>
class ComponentwiseProduct {
 public:
  /// Sizes and options are checked already; k >= 1, m, n >= 1.
  /// \throws WorkspaceError  the cap is below the smallest block
  ComponentwiseProduct(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options,
                       const Int8Gemm<ExecutionSpace>& engine);

  /// c.
  std::int64_t constant() const { return m_constant; }

  /// Of a plan: for any number of moduli.
  /// \throws WorkspaceError  the cap is below the smallest block
  std::size_t workspace_bytes(const char* function, const GemmOptions& options,
                              const Int8Gemm<ExecutionSpace>& engine) const {
    return m_kept_bytes +
           std::max(m_scratch_bytes, plan(function, options, max_moduli, engine).workspace_bytes());
  }

  std::size_t kept_bytes() const { return m_kept_bytes; }
  std::size_t scratch_bytes() const { return m_scratch_bytes; }

  /// The plan of so many moduli; what is kept counts for max_workspace_bytes, too.
  /// \throws WorkspaceError  the cap is below the smallest block
  PlanImpl<ExecutionSpace, Scalar> plan(const char* function, GemmOptions options, int num_moduli,
                                        const Int8Gemm<ExecutionSpace>& engine,
                                        std::int64_t entries = 1) const;

  template <class AElement, class BElement>
  Selection select(const ExecutionSpace& exec, Context<ExecutionSpace>& context, const VectorSet<AElement>& a,
                   const VectorSet<BElement>& b, const KnownVectors& known_a, const KnownVectors& known_b,
                   void* kept, void* scratch) const;

  /// \brief Bytes that select_batch() takes for so many entries; 0: they have to be selected one by one, because there is a
  /// cap or one of them is more than a block.
  std::size_t batch_bytes(const GemmOptions& options, const Int8Gemm<ExecutionSpace>& engine,
                          std::int64_t entries) const;

  /// \brief The number of moduli for each entry of a batch by the first lower bound, one launch a step for a block of
  /// entries; 0 where that bound is not enough and select() has to find out.
  /// \param a, b  op(A) and the transpose of op(B); pointers in host memory
  /// \param buffer  of batch_bytes()
  template <class AElement, class BElement>
  std::vector<int> select_batch(const ExecutionSpace& exec, Context<ExecutionSpace>& context,
                                const MatrixRef<const AElement>& a, const MatrixRef<const BElement>& b,
                                void* buffer) const;

  /// \param plan  of the selected number of moduli; not used if all_exact
  template <class AElement, class BElement>
  void execute(const ExecutionSpace& exec, Context<ExecutionSpace>& context, const Selection& selection,
               PlanImpl<ExecutionSpace, Scalar>& plan, const Scalar& alpha, const VectorSet<AElement>& a,
               const VectorSet<BElement>& b, const Scalar& beta, const MatrixRef<Scalar>& C, void* kept,
               void* workspace) const;

 private:
  static constexpr int planes = 3;  // of lower bounds: coarse, fine, support

  /// Over how many positions each lower bound goes; 0: not used. With that of the support open entries are listed.
  struct Bounds {
    std::int64_t coarse = 0, fine = 0, support = 0;
  };

  struct Kept;
  Kept kept_at(void* buffer) const;

  struct BatchMemory;
  BatchMemory batch_memory_at(void* buffer, std::int64_t entries,
                              const Int8Gemm<ExecutionSpace>& engine) const;
  /// How many entries one block has.
  std::int64_t entries_at_once(std::int64_t entries, const Int8Gemm<ExecutionSpace>& engine) const;

  /// \brief Whether the device chooses by itself which lower bound follows: then the host waits once for all of them.
  bool device_chooses(const Int8Gemm<ExecutionSpace>& engine) const;

  /// \brief Enqueues the certificate with these lower bounds.
  /// \param there  those whose products are there, if it is one block
  /// \param skip   as in certify()
  template <class AElement, class BElement>
  void certify_with(const ExecutionSpace& exec, Context<ExecutionSpace>& context,
                    const VectorSet<AElement>& a, const VectorSet<BElement>& b, const Kept& kept,
                    char* scratch, const Bounds& wanted, const Bounds& there, const std::int32_t* skip) const;

  std::size_t scratch_of(const Int8Gemm<ExecutionSpace>& engine, std::int64_t mb, std::int64_t nb,
                         std::int64_t kb) const;

  std::int64_t m_m, m_n, m_k;
  std::int64_t m_constant;  // c
  CertificateRule m_rule;
  CertificateTable m_table;  // of the rule
  std::int64_t m_capacity;   // of the list of open entries
  std::int64_t m_mb, m_nb, m_kb;
  std::size_t m_kept_bytes, m_scratch_bytes;
};

}  // namespace KokkosOzaki::Impl

#endif
