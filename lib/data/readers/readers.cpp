#include "base/error.h"
#include "config/load.h"
#include "data/readers/reader.h"

namespace dtrain {

template <>
const KindTable<Reader>& kinds<Reader>() {
  static const KindTable<Reader> table = [] {
    KindTable<Reader> all("reader");
    add_idx(all);
    add_csv(all);
    add_npy(all);
    add_hdf5(all);
    add_cifar10(all);
    add_synthetic(all);
    return all;
  }();
  return table;
}

std::string ReadRequest::find(const std::string& file_name) const {
  if (root.empty()) return find_file(file_name, place);
  return find_file(file_name, Mark{std::make_shared<const std::string>(root + "/dataset"), 1, 1});
}

void ReadRequest::fail(const std::string& message) const {
  throw UserError(message);
}

}  // namespace dtrain
