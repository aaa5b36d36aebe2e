#include "interop/keras/files/open_file.h"

#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/foreign_file.h"
#include "checkpoint/names_attribute.h"
#include "hdf5/hdf5_storage.h"
#include "interop/keras/files/json.h"
#include "interop/zip.h"

namespace dtrain {

namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kMetadata = "metadata.json";
constexpr const char* kWeightsEntry = "model.weights.h5";

// Callbacks with which libhdf5 allocates and copies a file image. They return the image itself instead of a
// copy, because libhdf5 only reads the file.

void* give_image(size_t, H5FD_file_image_op_t, void* image) {
  return image;
}
void* copy_no_image(void* dst, const void*, size_t, H5FD_file_image_op_t, void*) {
  return dst;
}
void* grow_no_image(void*, size_t, H5FD_file_image_op_t, void*) {
  return nullptr;
}
herr_t free_no_image(void*, H5FD_file_image_op_t, void*) {
  return 0;
}
void* same_image(void* image) {
  return image;
}
herr_t keep_image(void*) {
  return 0;
}

/// Opens an HDF5 file in memory for reading. The image must outlive the file.
Hdf5Handle open_image(const Bytes& image, const std::string& path) {
  const std::string doing = fmt::format("read {} of {}", kWeightsEntry, path);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), doing);
  constexpr size_t kIncrement = 1 << 16;
  checked(H5Pset_fapl_core(access, kIncrement, false), doing);
  H5FD_file_image_callbacks_t callbacks{give_image, copy_no_image, grow_no_image,   free_no_image,
                                        same_image, keep_image,    image.data.get()};
  checked(H5Pset_file_image_callbacks(access, &callbacks), doing);
  checked(H5Pset_file_image(access, image.data.get(), image.size), doing);
  // libhdf5 cannot open an image under the name of an existing file. A path below a file, as here, never
  // exists.
  return Hdf5Handle(H5Fopen(fmt::format("{}/{}", path, kWeightsEntry).c_str(), H5F_ACC_RDONLY, access));
}

Json read_json(const ZipFile& archive, const char* name) {
  const ZipEntry* entry = archive.find(name);
  if (!entry)
    throw UserError(
        fmt::format("{}: expected a model that Keras 3 saved as .keras, found no {} in the archive",
                    archive.path(), name));
  const Bytes bytes = archive.read(*entry);
  try {
    return Json::parse({reinterpret_cast<const char*>(bytes.data.get()), bytes.size});
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}: {}", archive.path(), name, error.what()));
  }
}

}  // namespace

OpenKerasFile::OpenKerasFile(const std::string& path) : path_(path) {
  try {
    open();
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {  // errors of libhdf5 are caused by the file
    throw UserError(fmt::format("{}: {}", path, error.what()));
  }
}

void OpenKerasFile::open() {
  const std::string& path = path_;
  if (is_keras_archive(path)) {
    open_archive();
  } else {
    file_ = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (!file_) throw why_not_opened(path);
    heap_.emplace(heap_of(file_, path));
  }
  layout_ = keras_layout(file_, path);
  // The weight file of a model without weights is empty, so its layout cannot be recognized.
  if (layout_ == KerasLayout::none && !facts_.model_config.is_null()) layout_ = KerasLayout::vars;
  if (layout_ == KerasLayout::none)
    throw UserError(fmt::format(
        "{}: expected an .h5 file of dtrain or Keras, found an HDF5 file of another program", path));
  references_.emplace();
  if (!image_.data) read_attributes();
}

void OpenKerasFile::open_archive() {
  const ZipFile archive(path_);
  const Json metadata = read_json(archive, kMetadata);
  facts_.model_config = read_json(archive, kConfig);
  facts_.keras_version = text_at(metadata, "keras_version");
  // The compile_config of a model that was not compiled is null or, since Keras 3.15, an empty object.
  const Json* const compiled = value_at(facts_.model_config, "compile_config");
  if (compiled && !(compiled->is_object() && compiled->entries().empty())) facts_.training_config = *compiled;
  const ZipEntry* weights = archive.find(kWeightsEntry);
  if (!weights)
    throw UserError(
        fmt::format("{}: expected the model's weights in {}, found {}", path_, kWeightsEntry,
                    archive.find("model.weights.json")
                        ? "weights split over several files; save the model in Keras without max_shard_size"
                        : "no such file in the archive"));
  image_ = archive.read(*weights);
  if (image_.size > 0) file_ = open_image(image_, path_);
  if (!file_)
    throw UserError(fmt::format("{}: expected an HDF5 file in {}, found another format or a damaged file",
                                path_, kWeightsEntry));
  heap_.emplace(file_, path_, static_cast<int64_t>(image_.size),
                [bytes = image_](int64_t offset, void* dst, size_t count) {
                  std::memcpy(dst, bytes.data.get() + offset, count);
                });
}

Hdf5Handle OpenKerasFile::open_weights() const {
  const bool whole = H5Lexists(file_, kModelWeights, H5P_DEFAULT) > 0;
  return Hdf5Handle(H5Gopen2(file_, whole ? kModelWeights : "/", H5P_DEFAULT), "read " + path_);
}

void OpenKerasFile::read_attributes() {
  const Hdf5Handle root = open_weights();
  const auto text_of = [](const NamesAttribute& attributes, const char* name) {
    const std::vector<std::string> texts = attributes.read(name);
    return texts.empty() ? "" : texts.front();
  };
  const NamesAttribute of_file(file_, path_, *heap_), of_weights(root, path_, *heap_);
  for (const NamesAttribute* attributes : {&of_file, &of_weights}) {
    if (facts_.keras_version.empty()) facts_.keras_version = text_of(*attributes, "keras_version");
    if (facts_.backend.empty()) facts_.backend = text_of(*attributes, "backend");
  }
  const auto parse = [&](const char* name) {
    if (!of_file.exists(name)) return Json();
    try {
      return Json::parse(text_of(of_file, name));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}, attribute {}: {}", path_, name, error.what()));
    }
  };
  facts_.model_config = parse("model_config");
  facts_.training_config = parse("training_config");
}

}  // namespace dtrain
