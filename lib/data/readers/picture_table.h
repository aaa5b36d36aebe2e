// Pictures that a table in delimited text names, a path a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/pictures/open_pictures.h"
#include "data/readers/csv_options.h"

namespace dtrain {

/// How a user says which table it is and what its columns are.
struct PictureCsv {
  std::string file;
  CsvColumnRef path;
  std::string extension;
  std::optional<CsvColumnRef> target;
  Named<CsvColumnRef> targets;
  std::optional<CsvColumnRef> weight;
  std::optional<bool> header;
  std::string delimiter = ",";

  static const Schema<PictureCsv>& schema();
  /// It has a header where columns are called by its names, if nothing is said.
  CsvFormat format() const;
};

/// A table that was found.
struct PictureTable {
  std::string path;
  std::string folder;  // that the pictures are below; "" stands for the table's own, where they are looked
                       // for in any case
  PictureCsv options;
  CsvFormat format;
  bool own_folder_first = false;  // of the two folders
};

/// The files that the table names, in its order. Throws UserError as read_csv().
FileListing files_of_table(const PictureTable& table);

/// The pictures with the request's targets: numbers, or classes, which texts are the names of. Rows are named
/// by what stands in the column. Throws UserError, with the row's place in the table, for a picture that
/// comes twice but for predictions, and, where on_error says so, for one that is not there.
PictureSet list_table(const PictureTable& table, OnError on_error, const ReadRequest& request);

}  // namespace dtrain
