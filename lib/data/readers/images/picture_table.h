// Images listed in a table of delimited text, one path per row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/pictures/open_pictures.h"
#include "data/readers/csv/options.h"

namespace dtrain {

/// Options that name the table and its columns.
struct PictureCsv {
  std::string file;
  CsvColumnRef path;
  std::string extension;
  std::optional<CsvColumnRef> target;
  Named<CsvColumnRef> targets;
  std::optional<CsvLabels> labels;
  std::optional<CsvColumnRef> target_image;
  std::optional<CsvColumnRef> weight;
  std::optional<bool> header;
  std::string delimiter = ",";

  static const Schema<PictureCsv>& schema();
  /// Returns the format of the text. Without the option `header`, the text has a header if columns are
  /// selected by name.
  CsvFormat format() const;
};

/// A table file, and how to read it.
struct PictureTable {
  std::string path;
  // Folder of the images, searched in addition to the table's own folder; "" if there is no such folder.
  std::string folder;
  PictureCsv options;
  CsvFormat format;
  // Whether the table is given on the command line and is not in the configuration. The table's own folder is
  // then searched first.
  bool is_given = false;
};

/// Returns the files that the table lists, in the order of the table. Throws UserError like read_csv().
FileListing files_of_table(const PictureTable& table);

/// Returns the images that a table lists, with the targets of the request. A target is a number, a class (the
/// text in the table is its name or, if the class names are known, its name or index), or an image listed in
/// the column target_image.
/// PictureSet::targets contains the target images, but its `row` is not set. The names of the rows are the
/// texts of the path column. Throws UserError, with the position in the table, if a split lists an image
/// twice, and if a file does not exist (unless `on_error` is `skip`).
PictureSet list_table(const PictureTable& table, OnError on_error, const ReadRequest& request);

}  // namespace dtrain
