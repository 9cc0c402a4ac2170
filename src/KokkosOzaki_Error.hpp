// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_ERROR_HPP
#define KOKKOSOZAKI_ERROR_HPP

#include <cstddef>
#include <stdexcept>
#include <string>

namespace KokkosOzaki {

/// \brief Base of the errors that are the library's own. Wrong arguments are std::invalid_argument instead.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// \brief A vendor library reported a failure. The contents of C are unspecified afterwards.
class BackendError : public Error {
 public:
  using Error::Error;
};

/// \brief Memory could not be had: an allocation failed, a buffer is too small, or a cap is below the
/// smallest block.
class WorkspaceError : public Error {
 public:
  WorkspaceError(const std::string& message, std::size_t needed, std::size_t got)
      : Error(message), m_needed_bytes(needed), m_got_bytes(got) {}

  std::size_t needed_bytes() const { return m_needed_bytes; }
  std::size_t got_bytes() const { return m_got_bytes; }

 private:
  std::size_t m_needed_bytes;
  std::size_t m_got_bytes;
};

}  // namespace KokkosOzaki

#endif
