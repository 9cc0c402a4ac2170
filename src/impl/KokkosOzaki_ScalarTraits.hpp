// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SCALARTRAITS_HPP
#define KOKKOSOZAKI_SCALARTRAITS_HPP

#include <Kokkos_Complex.hpp>
#include <Kokkos_Macros.hpp>
#include <type_traits>

namespace KokkosOzaki::Impl {

/// \brief What a scalar is made of. A complex number has two parts and takes three INT8 products per modulus:
/// of the real parts, of the imaginary parts, and of the sums of both.
template <class T>
struct ScalarTraits {
  using Real = T;
  static constexpr int parts = 1, products = 1;
  static constexpr bool is_complex = false;
};
template <class T>
struct ScalarTraits<Kokkos::complex<T>> {
  using Real = T;
  static constexpr int parts = 2, products = 3;
  static constexpr bool is_complex = true;
};

template <class T>
using RealOf = typename ScalarTraits<T>::Real;
template <class T>
constexpr int parts_of_v = ScalarTraits<T>::parts;
template <class T>
constexpr int products_of_v = ScalarTraits<T>::products;
template <class T>
constexpr bool is_complex_v = ScalarTraits<T>::is_complex;

/// Whether there are products of this type.
template <class T>
constexpr bool is_scalar_v =
    std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, Kokkos::complex<double>> ||
    std::is_same_v<T, Kokkos::complex<float>>;

/// Whether operands of this type may enter a product of type `Scalar`: the type itself, or its narrow form.
template <class T, class Scalar>
constexpr bool is_operand_of_v = is_scalar_v<T>&& parts_of_v<T> == parts_of_v<Scalar> &&
                                 sizeof(T) <= sizeof(Scalar);

/// Bits of the significand: u = 2^-precision.
template <class T>
constexpr int precision_v = std::is_same_v<RealOf<T>, float> ? 24 : 53;

/// The real part (0) or the imaginary part (1) of x.
template <class T>
KOKKOS_INLINE_FUNCTION T part_of(const T& x, int) {
  return x;
}
template <class T>
KOKKOS_INLINE_FUNCTION T part_of(const Kokkos::complex<T>& x, int part) {
  return part == 0 ? x.real() : x.imag();
}

/// X(SPACE, SCALAR) for every scalar of a product.
#define KOKKOSOZAKI_FOR_EACH_SCALAR(X, SPACE) \
  X(SPACE, float)                             \
  X(SPACE, double)                            \
  X(SPACE, Kokkos::complex<float>)            \
  X(SPACE, Kokkos::complex<double>)

}  // namespace KokkosOzaki::Impl

#endif
