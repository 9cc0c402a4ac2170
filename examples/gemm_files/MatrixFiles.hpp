// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MATRIXFILES_HPP
#define KOKKOSOZAKI_MATRIXFILES_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace GemmFiles {

/// \brief A dense matrix of doubles with the description of the file that it came from.
struct DenseMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;  ///< entry (i, j) is values[i + j * rows]
  std::string kind;            ///< e.g. "Matrix Market coordinate real symmetric, 408 stored entries"

  double& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i + j * rows)];
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i + j * rows)];
  }
};

/// \brief A file that cannot be read or written; what() is one sentence: file, line or byte, what was wrong.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// \brief Physical memory of this machine in bytes: no matrix larger than this is allocated.
std::size_t physical_memory_bytes();

/// \brief Reads the text of a Matrix Market file: array or coordinate; real or integer; general, symmetric or
/// skew-symmetric. Never allocates much more than the text and the dense matrix need. Numbers are rounded
/// once, to nearest; integers must be exact in double; nan and inf are values. A symmetric coordinate file
/// may store either triangle, not both. Coordinate entries given twice are added, in the order of the file.
/// Blank lines and comments may stand anywhere after the banner.
/// \param[in] name stands for the file in messages
/// \param[in] max_bytes a matrix that needs more as a dense array is refused
/// \throws FileError with file, line, expected and got
DenseMatrix read_matrix_market(std::string_view text, const std::string& name,
                               std::size_t max_bytes = physical_memory_bytes());

/// \brief Reads the bytes of a NumPy .npy file (format 1.0, 2.0 or 3.0): two-dimensional, dtype '<f8', either
/// order.
/// \throws FileError with file, byte offset, expected and got
DenseMatrix read_npy(std::string_view bytes, const std::string& name,
                     std::size_t max_bytes = physical_memory_bytes());

/// \brief Reads a matrix file of either kind, told apart by the first bytes (and by the name, if they say
/// nothing).
DenseMatrix read_matrix(const std::string& path);

enum class FileFormat { matrix_market, npy };

/// \brief The format that write_matrix uses for this path: .mtx or .npy.
/// \throws FileError  any other extension
FileFormat output_format(const std::string& path);

/// \brief Writes .mtx (array real general, the shortest digits that read back to the same bits) or .npy (1.0,
/// '<f8',
///        Fortran order).
///
/// The bytes go to a temporary file beside the target, which is renamed when it is complete. After a failure,
/// or when a signal ends the program, the temporary file is gone and an older target is as it was. \throws
/// FileError  naming the file and what the system reported
void write_matrix(const std::string& path, const DenseMatrix& matrix);

}  // namespace GemmFiles

#endif
