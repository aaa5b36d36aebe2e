#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "config/load/files.h"
#include "data/located_error.h"
#include "data/readers/reader.h"

namespace dtrain {

template <>
const Registry<Reader>& registry<Reader>() {
  static const Registry<Reader> table = [] {
    Registry<Reader> all("reader");
    add_idx(all);
    add_csv(all);
    add_npy(all);
    add_hdf5(all);
    add_cifar10(all);
    add_synthetic(all);
    add_images(all);
    add_webdataset(all);
    add_text(all);
    return all;
  }();
  return table;
}

Mark ReadRequest::folder() const {
  return root.empty() ? place : Mark{std::make_shared<const std::string>(root + "/dataset"), 1, 1};
}

std::string ReadRequest::find(const std::string& file_name) const {
  std::string path = find_any(file_name);
  if (is_empty_file(path)) fail(fmt::format("{}: expected data, found an empty file", path));
  return path;
}

std::string ReadRequest::find_any(const std::string& file_name) const {
  if (file_name.empty()) fail("expected the name of a file or a folder, found an empty name");
  std::string path = find_file(file_name, folder());
  if (root.empty() || file_name.starts_with('/') || file_type(path) != FileType::nothing) return path;
  const std::string near = suggestion_beside(path);
  fail(fmt::format("{}: there is no such file or folder{}{}", path,
                   file_type(root) == FileType::nothing ? ", and there is no folder " + root : "",
                   near.empty() ? "; set the folder of the data with --set dataset.root=DIR" : near));
}

std::vector<std::string> Reader::paths(const ReadRequest& request) const {
  std::vector<std::string> all;
  ErrorCollector errors;
  for (const std::string& file : files()) errors.attempt({}, [&] { all.push_back(request.find(file)); });
  errors.throw_if_errors();
  return all;
}

std::string Reader::why_no_windows(const WindowsOptions&) const {
  return "expected one of the readers csv, npy and hdf5, because only their samples are rows";
}

void ReadRequest::fail(const std::string& message) const {
  throw UserError(message);
}

void ReadRequest::fail_at(const Mark& mark, const std::string& message) const {
  throw LocatedError(at(mark), message);
}

}  // namespace dtrain
