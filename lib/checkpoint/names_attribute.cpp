#include "checkpoint/names_attribute.h"

#include <fstream>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "hdf5/hdf5_storage.h"

namespace dtrain {

bool NamesAttribute::exists(const std::string& name) const {
  return H5Aexists(object_, name.c_str()) > 0 || H5Aexists(object_, (name + "0").c_str()) > 0;
}

std::vector<std::string> NamesAttribute::read(const std::string& name) const {
  std::vector<std::string> names;
  if (H5Aexists(object_, name.c_str()) > 0) {
    append(name, names);
  } else {
    for (int part = 0; H5Aexists(object_, fmt::format("{}{}", name, part).c_str()) > 0; ++part)
      append(fmt::format("{}{}", name, part), names);
  }
  return names;
}

void NamesAttribute::append(const std::string& name, std::vector<std::string>& names) const {
  const std::string doing = fmt::format("read the attribute {} of {}", name, path_);
  const Hdf5Handle attribute(H5Aopen(object_, name.c_str(), H5P_DEFAULT), doing);
  const Hdf5Handle type(H5Aget_type(attribute), doing), space(H5Aget_space(attribute), doing);
  const hssize_t count = checked(H5Sget_simple_extent_npoints(space), doing);
  if (count == 0) return;
  if (H5Tget_class(type) != H5T_STRING)
    throw UserError(fmt::format("{}: the attribute {} must contain strings (names), but it has another type",
                                path_, name));
  const bool is_variable = H5Tis_variable_str(type) > 0;
  const size_t bytes = is_variable ? heap_.reference_bytes() : H5Tget_size(type);
  if (static_cast<uint64_t>(count) > static_cast<uint64_t>(heap_.file_bytes()) / bytes)
    throw UserError(fmt::format(
        "{}: the attribute {} claims to contain {} names, which is more than the file can contain", path_,
        name, count));
  if (is_variable) return append_variable(attribute, name, static_cast<size_t>(count), names);
  std::string text(bytes * static_cast<size_t>(count), '\0');
  checked(H5Aread(attribute, type, text.data()), doing);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    names.push_back(text.substr(i * bytes, bytes).c_str());  // c_str() ends the text at the zero padding
}

void NamesAttribute::append_variable(hid_t attribute, const std::string& name, size_t count,
                                     std::vector<std::string>& names) const {
  const std::string where = fmt::format("{}: the attribute {}", path_, name);
  const size_t bytes = heap_.reference_bytes();
  std::vector<std::byte> references(count * bytes);
  checked(H5Aread(attribute, heap_.reference_type(), references.data()), "read " + where);
  // The total size of the names is limited, because a malicious file may contain many references to the same
  // long text.
  int64_t left = heap_.file_bytes();
  for (size_t i = 0; i < count; ++i) {
    const std::string text = heap_.text(std::span(references).subspan(i * bytes, bytes), where);
    left -= static_cast<int64_t>(text.size());
    if (left < 0)
      throw UserError(fmt::format(
          "{} contains names that are larger in total than the whole file; the file is damaged", where));
    names.emplace_back(text.c_str());
  }
}

KerasLayout keras_layout(hid_t file, const std::string& path) {
  reject_links(file, path, kModelWeights);
  const bool whole = H5Lexists(file, kModelWeights, H5P_DEFAULT) > 0;
  const Hdf5Handle root(H5Gopen2(file, whole ? kModelWeights : "/", H5P_DEFAULT));
  if (!root) return KerasLayout::none;
  if (H5Aexists(root, "layer_names") > 0 || H5Aexists(root, "layer_names0") > 0) return KerasLayout::layers;
  for (const char* name : {"layers", "vars", "_layer_checkpoint_dependencies"})
    if (H5Lexists(root, name, H5P_DEFAULT) > 0) return KerasLayout::vars;
  return KerasLayout::none;
}

KerasLayout keras_layout_of(const std::string& path) {
  const Hdf5Session session;
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  return file ? keras_layout(file, path) : KerasLayout::none;
}

Hdf5Heap heap_of(hid_t opened, const std::string& path) {
  const auto file = std::make_shared<std::ifstream>(path, std::ios::binary);
  file->seekg(0, std::ios::end);
  const auto bytes = static_cast<int64_t>(file->tellg());
  if (bytes < 0) throw Error(fmt::format("{}: the file can no longer be read", path));
  return Hdf5Heap(opened, path, bytes, [file, path](int64_t offset, void* dst, size_t count) {
    file->seekg(offset);
    file->read(static_cast<char*>(dst), static_cast<std::streamsize>(count));
    if (!*file) throw Error(fmt::format("{}: the file could not be read at offset {}", path, offset));
  });
}

}  // namespace dtrain
