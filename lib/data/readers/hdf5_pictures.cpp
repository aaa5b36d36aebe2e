#include "data/readers/hdf5_pictures.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/hdf5_dataset.h"

namespace dtrain {

namespace {

bool is_byte(hid_t type) {
  return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 1;
}

class Hdf5Pictures final : public PictureSource {
 public:
  /// Made within a session.
  explicit Hdf5Pictures(Hdf5Dataset open) : open_(std::move(open)), type_(H5Dget_type(open_.dataset)) {
    const H5T_class_t kind = H5Tget_class(type_);
    const auto rank = open_.extents.size();
    if (kind == H5T_VLEN && rank == 1) {
      const Hdf5Handle element(H5Tget_super(type_));
      is_variable_ = is_byte(element);
      if (is_variable_) type_ = Hdf5Handle(H5Tvlen_create(element));
    }
    if (!is_variable_ && !(is_byte(type_) && rank == 2) && !(kind == H5T_OPAQUE && rank == 1))
      throw UserError(fmt::format(
          "{}: expected encoded pictures (bytes of variable length, rows of uint8, or opaque ones), found "
          "another type; arrays of pixels are for the reader hdf5",
          open_.where));
    const auto bytes = static_cast<int64_t>(H5Tget_size(type_));
    open_.check_extents(static_cast<int>(std::min<int64_t>(bytes, 1 << 20)));
    length_ = rank == 2 ? static_cast<int64_t>(open_.extents[1]) : bytes;
    if (!is_variable_) picture_bytes_to_read(open_.where, length_, 0);
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
    const Hdf5Session session;
    if (is_variable_) return read_variable(i, most, bytes);
    bytes.resize(static_cast<size_t>(length_));
    open_.read_slab(i, 1, type_, bytes.data());
    bytes.resize(static_cast<size_t>(std::min(most, length_)));
    return length_;
  }

 private:
  int64_t read_variable(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const {
    hvl_t found{0, nullptr};
    open_.read_slab(i, 1, type_, &found);
    const auto reclaim = [this](hvl_t* read) {
      const hsize_t one = 1;
      const Hdf5Handle space(H5Screate_simple(1, &one, nullptr));
      H5Dvlen_reclaim(type_, space, H5P_DEFAULT, read);
    };
    const std::unique_ptr<hvl_t, decltype(reclaim)> owned(&found, reclaim);
    const auto length = static_cast<int64_t>(found.len);
    const auto* begin = static_cast<const uint8_t*>(found.p);
    bytes.assign(begin, begin + picture_bytes_to_read(name(i), length, most));
    return length;
  }

  Hdf5Dataset open_;
  Hdf5Handle type_;  // of an element in memory
  bool is_variable_ = false;
  int64_t length_ = 0;  // bytes of each picture, where they are not of variable length
};

}  // namespace

const Schema<PictureHdf5>& PictureHdf5::schema() {
  static const auto all = [] {
    Schema<PictureHdf5> schema("Datasets of an HDF5 file whose first axis counts the pictures.");
    schema.required("file", &PictureHdf5::file, "the file");
    return add_array_names(schema, "the dataset");
  }();
  return all;
}

std::shared_ptr<const PictureSource> hdf5_pictures(const std::string& path, const std::string& name) {
  const Hdf5Session session;
  return std::make_shared<Hdf5Pictures>(Hdf5Dataset(path, name));
}

}  // namespace dtrain
