// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SCALAROPERANDS_HPP
#define KOKKOSOZAKI_SCALAROPERANDS_HPP

#include <KokkosOzaki.hpp>
#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "SharedMemory.hpp"

// Operands of any scalar, for the tests that hold every scalar of the library to the same contract: a new one is an
// entry of ContractScalars (and of RealContractScalars if it is real).

namespace KokkosOzaki::Testing {

using ContractScalars = ::testing::Types<double, float, Kokkos::complex<double>, Kokkos::complex<float>>;
using RealContractScalars = ::testing::Types<double, float>;

/// \brief A scalar as its real and imaginary part.
template <class Scalar>
struct ScalarTraits {
  using Real = Scalar;
  static constexpr bool is_complex = false;
  static Scalar make(Real re, Real) { return re; }
  static Real real(const Scalar& x) { return x; }
  static Real imag(const Scalar&) { return 0; }
};

template <class R>
struct ScalarTraits<Kokkos::complex<R>> {
  using Real = R;
  static constexpr bool is_complex = true;
  static Kokkos::complex<R> make(R re, R im) { return {re, im}; }
  static R real(const Kokkos::complex<R>& x) { return x.real(); }
  static R imag(const Kokkos::complex<R>& x) { return x.imag(); }
};

// ---- typed cases: spaces times scalars --------------------------------------------------------------

template <class SpaceType, class ScalarType>
struct On {
  using Space = SpaceType;
  using Scalar = ScalarType;
};

template <class... Lists>
struct Joined;
template <class... Cases>
struct Joined<::testing::Types<Cases...>> {
  using type = ::testing::Types<Cases...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<::testing::Types<First...>, ::testing::Types<Second...>, Rest...>
    : Joined<::testing::Types<First..., Second...>, Rest...> {};

template <class Spaces, class Scalars>
struct Crossed;
template <class... Spaces, class... Scalars>
struct Crossed<::testing::Types<Spaces...>, ::testing::Types<Scalars...>> {
  template <class Scalar>
  using one = ::testing::Types<On<Spaces, Scalar>...>;
  using type = typename Joined<one<Scalars>...>::type;
};

/// For TYPED_TEST_SUITE: every enabled space with every scalar.
using ContractCases = Crossed<EnabledSpaces, ContractScalars>::type;
/// Spaces that any thread of the host may use; Kokkos::Threads is for the one that initialised it.
using HostThreadsCases = Crossed<SpacesOfAnyThread::types, ContractScalars>::type;
using RealContractCases = Crossed<EnabledSpaces, RealContractScalars>::type;
using ComplexContractCases =
    Crossed<EnabledSpaces, ::testing::Types<Kokkos::complex<double>, Kokkos::complex<float>>>::type;

struct ContractNames {
  template <class Case>
  static std::string GetName(int index) {
    return case_name(index, Case::Space::name() + std::to_string(index));
  }
};

// ---- operands ---------------------------------------------------------------------------------------

/// Any NaN equals any NaN; everything else by its bits.
template <class Real>
bool same_real(Real x, Real y) {
  return std::memcmp(&x, &y, sizeof(Real)) == 0 || (std::isnan(x) && std::isnan(y));
}

template <class Scalar>
bool same_scalar(const Scalar& x, const Scalar& y) {
  using Traits = ScalarTraits<Scalar>;
  return same_real(Traits::real(x), Traits::real(y)) && same_real(Traits::imag(x), Traits::imag(y));
}

template <class Scalar>
std::string text_of(const Scalar& x) {
  char text[100];
  std::snprintf(text, sizeof(text), "(%a, %a)", static_cast<double>(ScalarTraits<Scalar>::real(x)),
                static_cast<double>(ScalarTraits<Scalar>::imag(x)));
  return text;
}

/// How an operand lies in memory: entries before it, extra leading dimension, gap between neighbours.
struct Place {
  bool row_major = false;
  std::int64_t offset = 0, extra_ld = 0, step = 1;
};

/// \brief A matrix of scalars in memory of its own; gaps hold a number of which the test knows that it stays.
template <class Scalar>
class ScalarOperand {
 public:
  using View = Kokkos::View<Scalar**, Kokkos::LayoutStride, SharedSpace, Kokkos::MemoryUnmanaged>;

  /// \param entry entry(i, j)
  template <class Entry>
  ScalarOperand(std::int64_t rows, std::int64_t cols, const Place& place, const Entry& entry)
      : m_rows(rows), m_cols(cols), m_offset(place.offset) {
    const std::int64_t minor = place.row_major ? cols : rows, major = place.row_major ? rows : cols;
    const std::int64_t ld = place.step * minor + place.extra_ld;
    m_row_stride = place.row_major ? ld : place.step;
    m_col_stride = place.row_major ? place.step : ld;
    m_memory.assign(static_cast<std::size_t>(m_offset + ld * major + place.extra_ld), gap());
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) m_memory[at(i, j)] = entry(i, j);
  }
  ScalarOperand(const ScalarOperand&) = delete;
  ScalarOperand& operator=(const ScalarOperand&) = delete;

  View view() const {
    return View(
        m_memory.data() + m_offset,
        Kokkos::LayoutStride(static_cast<std::size_t>(m_rows), static_cast<std::size_t>(m_row_stride),
                             static_cast<std::size_t>(m_cols), static_cast<std::size_t>(m_col_stride)));
  }
  const Scalar& operator()(std::int64_t i, std::int64_t j) const { return m_memory[at(i, j)]; }

  ::testing::AssertionResult gaps_are_intact() const {
    std::vector<bool> is_entry(m_memory.size(), false);
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = 0; i < m_rows; ++i) is_entry[at(i, j)] = true;
    for (std::size_t p = 0; p < m_memory.size(); ++p)
      if (!is_entry[p] && !same_scalar(m_memory[p], gap()))
        return ::testing::AssertionFailure() << "the gap at " << p << " is " << text_of(m_memory[p]);
    return ::testing::AssertionSuccess();
  }

  /// Equal to expected(i, j) everywhere, any NaN to any NaN.
  template <class Expected>
  ::testing::AssertionResult equals(const Expected& expected) const {
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = 0; i < m_rows; ++i) {
        const Scalar right = expected(i, j), got = (*this)(i, j);
        if (!same_scalar(right, got))
          return ::testing::AssertionFailure() << "entry (" << i << "," << j << "): expected "
                                               << text_of(right) << ", got " << text_of(got);
      }
    return ::testing::AssertionSuccess();
  }

 private:
  // A NaN, so that reading a gap spoils the result; all NaNs are one to same_scalar, so writing shows as a number.
  static Scalar gap() {
    using Traits = ScalarTraits<Scalar>;
    constexpr auto nan = std::numeric_limits<typename Traits::Real>::quiet_NaN();
    return Traits::make(nan, Traits::is_complex ? nan : 0);
  }
  std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(m_offset + i * m_row_stride + j * m_col_stride);
  }

  std::int64_t m_rows, m_cols, m_offset, m_row_stride, m_col_stride;
  mutable std::vector<Scalar> m_memory;
};

constexpr char trans_letters[] = {'N', 'T', 'C'};

constexpr bool is_turned(char trans) {
  return trans != 'N';
}

/// The operand whose op() has the entries entry(i, j): stored transposed, and conjugated for 'C'.
template <class Scalar, class Entry>
ScalarOperand<Scalar> stored_operand(std::int64_t rows, std::int64_t cols, char trans, const Place& place,
                                     const Entry& entry) {
  using Traits = ScalarTraits<Scalar>;
  if (!is_turned(trans)) return ScalarOperand<Scalar>(rows, cols, place, entry);
  return ScalarOperand<Scalar>(cols, rows, place, [&](std::int64_t i, std::int64_t j) {
    const Scalar x = entry(j, i);
    return trans == 'C' && Traits::is_complex ? Traits::make(Traits::real(x), -Traits::imag(x)) : x;
  });
}

/// gemm on this space, and a fence.
template <class Space, class Scalar>
void run_gemm(char transA, char transB, const Scalar& alpha, const ScalarOperand<Scalar>& A,
              const ScalarOperand<Scalar>& B, const Scalar& beta, const ScalarOperand<Scalar>& C,
              const GemmOptions& options = {}) {
  const char letters[] = {transA, '\0', transB, '\0'};
  const Space exec{};
  gemm(exec, letters, letters + 2, alpha, A.view(), B.view(), beta, C.view(), options);
  exec.fence();
}

}  // namespace KokkosOzaki::Testing

#endif
