// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_DISPATCH_HPP
#define KOKKOSOZAKI_DISPATCH_HPP

#include <string>

#include "KokkosOzaki_Componentwise.hpp"
#include "KokkosOzaki_CostModel.hpp"

namespace KokkosOzaki::Impl {

/// \brief Measures products of this space and scalar on its default instance: a second or so on a host, a few hundredths
/// on a GPU.
/// \param backend of the emulated ones; null: the best one
/// \throws WorkspaceError, BackendError
template <class ExecutionSpace, class Scalar>
CostModel measure_costs(const char* backend);

/// What cost_model() knows the model of this space, scalar, device and engine by.
template <class ExecutionSpace, class Scalar>
std::string cost_key(const char* backend_name);

/// \brief Whether Method::automatic takes the native product rather than the emulated one; the first call for a device
/// and scalar measures where nobody has before.
/// \param function, exec  for the refusal if that would have to be while the stream is being captured
/// \param selection  null: nothing is known of the data yet
template <class ExecutionSpace, class Scalar>
bool native_is_faster(const char* function, const ExecutionSpace& exec,
                      const Context<ExecutionSpace>& context, const ProductSize& size,
                      const GemmOptions& options, const Selection* selection = nullptr);

/// \brief Whether a product whose number of moduli was chosen becomes a native one after all.
/// \param vendor_takes  whether a vendor's library takes its operands
template <class ExecutionSpace, class Scalar>
bool turns_native(const char* function, const ExecutionSpace& exec, const Context<ExecutionSpace>& context,
                  const ProductSize& size, const GemmOptions& options, const Selection& selection,
                  bool vendor_takes) {
  if (selection.exact_entries != 0 && options.fallback == Fallback::vendor) return true;
  return options.method == Method::automatic && vendor_takes &&
         native_is_faster<ExecutionSpace, Scalar>(function, exec, context, size, options, &selection);
}

/// Whether a call with these options may need Context::native.
constexpr bool may_be_native(const GemmOptions& options) {
  return options.method != Method::emulated ||
         (options.fallback == Fallback::vendor && chooses_from_data(options));
}

}  // namespace KokkosOzaki::Impl

#endif
