#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/initializers/draws.h"
#include "nn/initializers/table.h"

namespace dtrain {
namespace {

struct OrthogonalOptions {
  double gain = 1;
};

/// Orthogonalizes `column`: subtracts its projections onto the first `count` columns of `basis`. Each column
/// has `rows` numbers.
void remove_projections(const std::vector<double>& basis, size_t count, size_t rows, double* column) {
  for (size_t k = 0; k < count; ++k) {
    const double* const other = basis.data() + k * rows;
    // Four independent sums allow the CPU to start an addition before the previous one has finished.
    double sums[4] = {};
    size_t i = 0;
    for (; i + 4 <= rows; i += 4)
      for (size_t j = 0; j < 4; ++j) sums[j] += other[i + j] * column[i + j];
    for (; i < rows; ++i) sums[0] += other[i] * column[i];
    const double product = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (i = 0; i < rows; ++i) column[i] -= product * other[i];
  }
}

/// Keras's Orthogonal. Fills a matrix with normal random numbers and returns Q of its QR decomposition. The
/// signs are chosen such that R has a positive diagonal. The last axis of the weight gives the columns of the
/// matrix, and all other axes together give the rows.
class Orthogonal : public Initializer {
 public:
  explicit Orthogonal(const OrthogonalOptions& options) : gain_(options.gain) {}

  void fill(float* values, const Shape& shape, const Philox& random) const override {
    const auto elements = static_cast<size_t>(shape.elements());
    if (elements == 0) return;
    const size_t across = shape.rank() == 0 ? 1 : static_cast<size_t>(shape.back()), down = elements / across;
    // At most n vectors of n elements can be orthonormal to each other. Therefore the columns are made
    // orthonormal if the matrix has more rows than columns, and the rows otherwise.
    const size_t rows = std::max(across, down), columns = std::min(across, down);
    draw_normal(values, shape.elements(), 0, 1, random);
    std::vector<double> basis(values, values + elements);  // column after column
    for (size_t k = 0; k < columns; ++k) {
      double* const column = basis.data() + k * rows;
      // The projections are removed twice, because the first pass leaves rounding errors. These errors are
      // large if only a short vector remains after the first pass.
      remove_projections(basis, k, rows, column);
      remove_projections(basis, k, rows, column);
      double squares = 0;
      for (size_t i = 0; i < rows; ++i) squares += column[i] * column[i];
      const double factor = 1 / std::sqrt(squares);
      for (size_t i = 0; i < rows; ++i) column[i] *= factor;
    }
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < columns; ++k)
        values[down >= across ? i * across + k : k * across + i] =
            static_cast<float>(gain_ * basis[k * rows + i]);
  }

 private:
  double gain_;
};

}  // namespace

void add_orthogonal(Registry<Initializer>& table) {
  table.add<Orthogonal>(
      "orthogonal",
      Schema<OrthogonalOptions>("A random matrix with orthonormal columns or, if it has fewer rows than "
                                "columns, with orthonormal rows. The last axis of the weight gives the "
                                "columns of the matrix, and all other axes together give its rows.")
          .example("{gain: 2}")
          .optional("gain", &OrthogonalOptions::gain, "factor by which the matrix is multiplied"));
}

}  // namespace dtrain
