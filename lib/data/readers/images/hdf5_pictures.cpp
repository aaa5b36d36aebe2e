#include "data/readers/images/hdf5_pictures.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "data/pictures/picture_files.h"
#include "data/readers/arrays/hdf5_dataset.h"
#include "hdf5/hdf5_heap.h"

namespace dtrain {

namespace {

bool is_byte(hid_t type) {
  return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 1;
}

class Hdf5Pictures final : public PictureSource {
 public:
  /// Must be called within an Hdf5Session.
  explicit Hdf5Pictures(Hdf5Dataset open) : open_(std::move(open)), type_(H5Dget_type(open_.dataset)) {
    const H5T_class_t kind = H5Tget_class(type_);
    const auto rank = open_.extents.size();
    if (kind == H5T_VLEN && rank == 1) {
      const Hdf5Handle element(H5Tget_super(type_));
      if (is_byte(element)) open_heap();
    }
    if (!heap_ && !(is_byte(type_) && rank == 2) && !(kind == H5T_OPAQUE && rank == 1))
      throw UserError(
          fmt::format("{}: expected encoded images (bytes of variable length, rows of uint8, or opaque "
                      "elements), found another type; use the reader hdf5 for arrays of pixels",
                      open_.where));
    const auto bytes = static_cast<int64_t>(H5Tget_size(type_));
    const Hdf5References references;
    open_.check_storage(static_cast<int>(std::min<int64_t>(bytes, 1 << 20)));
    length_ = rank == 2 ? static_cast<int64_t>(open_.extents[1]) : bytes;
    if (heap_)
      read_references();
    else
      picture_bytes_to_read(open_.where, length_, 0);
  }
  ~Hdf5Pictures() override {
    const Hdf5Session session;
    type_ = Hdf5Handle();
    open_.close();
  }

  int64_t size() const override { return static_cast<int64_t>(open_.extents[0]); }
  std::string name(int64_t i) const override { return fmt::format("{}[{}]", open_.where, i); }
  void check() const override { open_.input->check_unchanged(); }

  int64_t read(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const override {
    if (heap_) return read_variable(i, most, bytes);
    const Hdf5Session session;
    bytes.resize(static_cast<size_t>(length_));
    open_.read_slab(i, 1, type_, bytes.data());
    bytes.resize(static_cast<size_t>(std::min(most, length_)));
    return length_;
  }

 private:
  int64_t read_variable(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const {
    const std::string picture = name(i);
    const Hdf5Heap::Place place = heap_->find(reference(i), picture);
    return read_picture_at(*open_.input, picture, place.offset, place.bytes, most, bytes);
  }

  std::vector<std::byte> reference(int64_t i) const {
    std::vector<std::byte> one(heap_->reference_bytes());
    const std::vector<std::byte>& block = references_[static_cast<size_t>(i / kBlock)];
    if (block.empty()) {
      const Hdf5Session session;
      const Hdf5References references;
      open_.read_slab(i, 1, type_, one.data());
    } else {
      std::memcpy(one.data(), block.data() + static_cast<size_t>(i % kBlock) * one.size(), one.size());
    }
    return one;
  }

  void open_heap() {
    const auto read = [input = open_.input](int64_t offset, void* dst, size_t bytes) {
      input->read(offset, dst, bytes);
    };
    heap_.emplace(open_.file, open_.input->path(), open_.input->size(), read);
    type_ = heap_->reference_type();
  }

  /// Reads all references into memory, so that images can later be read in any order without libhdf5 and its
  /// lock. If a block of references cannot be read completely, it stays empty, and its references are later
  /// read one by one. Therefore a damaged reference does not affect the other references.
  void read_references() {
    for (int64_t first = 0; first < size(); first += kBlock) {
      const int64_t count = std::min(kBlock, size() - first);
      std::vector<std::byte> block(static_cast<size_t>(count) * heap_->reference_bytes());
      try {
        open_.read_slab(first, count, type_, block.data());
      } catch (const UserError&) {
        block.clear();
      }
      references_.push_back(std::move(block));
    }
  }

  static constexpr int64_t kBlock = 4096;

  Hdf5Dataset open_;
  Hdf5Handle type_;               // type of an element in memory
  std::optional<Hdf5Heap> heap_;  // heap that holds images of variable length
  // References to the images, in blocks, if the images have variable length. Code that reads these references
  // from memory needs no lock.
  std::vector<std::vector<std::byte>> references_;
  int64_t length_ = 0;  // bytes of each image if all images have the same length
};

}  // namespace

const Schema<PictureHdf5>& PictureHdf5::schema() {
  static const auto all = [] {
    Schema<PictureHdf5> schema("Datasets of an HDF5 file with the images along their first axis.");
    schema.required("file", &PictureHdf5::file, "path of the file");
    return add_array_names(schema, "the dataset");
  }();
  return all;
}

std::shared_ptr<const PictureSource> hdf5_pictures(const std::string& path, const std::string& name) {
  const Hdf5Session session;
  return std::make_shared<Hdf5Pictures>(Hdf5Dataset(path, name));
}

}  // namespace dtrain
