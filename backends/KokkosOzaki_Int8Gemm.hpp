// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INT8GEMM_HPP
#define KOKKOSOZAKI_INT8GEMM_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "../src/impl/KokkosOzaki_ModuliTable.hpp"

namespace KokkosOzaki::Impl {

/// \brief Where `count` residue planes and their INT32 products lie.
///
/// rA[p] holds m vectors (rows of op(A)), rB[p] holds n vectors (columns of op(B)); position l of vector i is
/// rA[p * stride_a + i * lda + l], so k is the unit stride. P[p](i, j) is P[p * stride_p + j * ldp + i].
///
/// What an engine may rely on:
///  - rA, rB and P start on a 64-byte boundary; lda, ldb are multiples of 64, ldp is a multiple of 16, and so
///  are
///    stride_a, stride_b, stride_p;
///  - vectors are zero from position k up to the next multiple of 64;
///  - vectors m .. padded(m)-1 of rA and n .. padded(n)-1 of rB exist, where padded(x) is the next multiple
///    of 16; up to the next multiple of zero_padding() they hold zeros in those positions;
///  - P[p] has room for padded(m) x padded(n) entries; what lies outside m x n may be overwritten with
///  anything.
struct PlaneGeometry {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldp = 0;                 // elements
  std::int64_t stride_a = 0, stride_b = 0, stride_p = 0;  // elements from one plane to the next
  int count = 1;                                          // planes
  int planes_per_modulus = 1;  // for run_reduced: those of a batch, one after the other
};

/// \brief An engine for exact products of INT8 matrices: P[p](i,j) = sum_l rA[p](l,i) * rB[p](l,j), int8 x
/// int8 -> int32.
///
/// Entries are any int8 value, -128 included; the caller keeps k <= max_k(), so that no sum leaves INT32. No
/// scaling, no fence, no allocation inside run(): work is enqueued on `exec`. An object belongs to one plan
/// and serves one call at a time.
template <class ExecutionSpace>
class Int8Gemm {
 public:
  virtual ~Int8Gemm() = default;

  /// Short name as it appears in reports, e.g. "portable".
  virtual const char* name() const = 0;

  /// Largest k of one run() for which every INT32 sum is exact.
  virtual std::int64_t max_k() const { return 131008; }

  /// Bytes of scratch memory that run() needs for this geometry.
  virtual std::size_t workspace_bytes(const PlaneGeometry&) const { return 0; }

  /// The engine reads vectors up to the next multiple of this, a divisor of 16: those behind the last one
  /// have to be zeros.
  virtual std::int64_t zero_padding(const PlaneGeometry&) const { return 16; }

  /// \brief Makes what only run() needs, such as a vendor's handle; where an engine is asked for sizes alone it
  /// is left out.
  /// \throws BackendError  a vendor library could not be initialised
  virtual void prepare() {}

  /// \brief Enqueues the products of all planes on `exec`; prepare() came before.
  /// \param accumulate  false: P is overwritten unread; true: the products are added to P
  /// \param workspace   workspace_bytes(geometry) bytes on a 64-byte boundary, or null where that is 0
  /// \throws BackendError  a vendor library reported a failure
  virtual void run(const ExecutionSpace& exec, const PlaneGeometry& geometry, const std::int8_t* rA,
                   const std::int8_t* rB, std::int32_t* P, bool accumulate, void* workspace) = 0;

  /// Whether run_unless() does nothing where the device says so.
  virtual bool can_skip(const PlaneGeometry&) const { return false; }

  /// \brief As run(), for products that are not needed where `*skip` is not zero by then; they may be left out.
  /// \param skip  in the memory of the execution space
  /// \throws BackendError  a vendor library reported a failure
  virtual void run_unless(const std::int32_t* /*skip*/, const ExecutionSpace& exec,
                          const PlaneGeometry& geometry, const std::int8_t* rA, const std::int8_t* rB,
                          std::int32_t* P, bool accumulate, void* workspace) {
    run(exec, geometry, rA, rB, P, accumulate, workspace);
  }

  /// Whether run_reduced() is there and the better way for these sizes: products and the stage reduce in one
  /// go, so that INT32 results are not stored.
  virtual bool can_reduce(const PlaneGeometry&) const { return false; }

  /// \brief Enqueues Y[p](i,j) = the output residue of the product of plane p, at p * stride_p + j * ldp + i.
  /// \param table       in the memory of the execution space
  /// \param first       modulus of plane 0; that of plane p is first + p / planes_per_modulus
  /// \param accumulate  true: the residues in Y, of earlier blocks of k, are folded in
  /// \throws BackendError  a vendor library reported a failure
  virtual void run_reduced(const ExecutionSpace&, const PlaneGeometry&, const std::int8_t* /*rA*/,
                           const std::int8_t* /*rB*/, const ModuliTable* /*table*/, int /*first*/,
                           std::int8_t* /*Y*/, bool /*accumulate*/, void* /*workspace*/) {
    throw std::logic_error("KokkosOzaki: this engine does not reduce");
  }
};

}  // namespace KokkosOzaki::Impl

#endif
