#include "data/dataset.h"

#include <numeric>

namespace dtrain {

size_t Dataset::stored_bytes() const {
  size_t bytes = 0;
  for (size_t i = 0; i < columns().size(); ++i) {
    const auto form = stored_form(i);
    bytes += static_cast<size_t>(size() * columns()[i].shape.elements()) *
             bytes_of(form ? form->dtype : columns()[i].dtype);
  }
  return bytes;
}

std::vector<int64_t> Dataset::rows_in_files() const {
  std::vector<int64_t> rows(static_cast<size_t>(size()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

std::string Dataset::sample_name(int64_t index) const {
  return has_ids() ? sample_id(index) : "row " + sample_id(index);
}

}  // namespace dtrain
