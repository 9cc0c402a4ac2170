// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_LABELS_HPP
#define KOKKOSOZAKI_LABELS_HPP

#include <string>

/// \brief Labels of kernels and regions. Kokkos takes a std::string: made once, so that a launch allocates nothing and
/// cannot fail for want of memory after C was written.
namespace KokkosOzaki::Impl::Labels {

inline const std::string add_residues = "KokkosOzaki::add_residues";
inline const std::string adopt_statistics = "KokkosOzaki::adopt_statistics";
inline const std::string bound_maxima = "KokkosOzaki::bound_maxima";
inline const std::string certify = "KokkosOzaki::certify";
inline const std::string copy_entries = "KokkosOzaki::copy_entries";
inline const std::string exact_entries = "KokkosOzaki::exact_entries";
inline const std::string exact_product = "KokkosOzaki::exact_product";
inline const std::string multiply = "KokkosOzaki::multiply";
inline const std::string multiply_host = "KokkosOzaki::multiply_host";
inline const std::string multiply_portable = "KokkosOzaki::multiply_portable";
inline const std::string native = "KokkosOzaki::native";
inline const std::string place_entries = "KokkosOzaki::place_entries";
inline const std::string quantize = "KokkosOzaki::quantize";
inline const std::string reconstruct = "KokkosOzaki::reconstruct";
inline const std::string reduce = "KokkosOzaki::reduce";
inline const std::string reduce_reconstruct = "KokkosOzaki::reduce_reconstruct";
inline const std::string repair = "KokkosOzaki::repair";
inline const std::string reset_control = "KokkosOzaki::reset_control";
inline const std::string reset_maxima = "KokkosOzaki::reset_maxima";
inline const std::string residues = "KokkosOzaki::residues";
inline const std::string scale = "KokkosOzaki::scale";
inline const std::string scale_c = "KokkosOzaki::scale_c";
inline const std::string scale_candidates = "KokkosOzaki::scale_candidates";
inline const std::string scale_choose = "KokkosOzaki::scale_choose";
inline const std::string scale_fast = "KokkosOzaki::scale_fast";
inline const std::string scaled_integers = "KokkosOzaki::scaled_integers";
inline const std::string statistics = "KokkosOzaki::statistics";
inline const std::string statistics_chunks = "KokkosOzaki::statistics_chunks";
inline const std::string statistics_join = "KokkosOzaki::statistics_join";
inline const std::string stored_residues = "KokkosOzaki::stored_residues";
inline const std::string zero_padding = "KokkosOzaki::zero_padding";

}  // namespace KokkosOzaki::Impl::Labels

#endif
