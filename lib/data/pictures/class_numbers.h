// The texts of class labels. The data may refer to a class by its index or by its name.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// Returns the label text of each class. If the labels of the data set are class indices, returns "0", "1",
/// ...; otherwise returns the class names. `first` is one of the labels: if it is a number, all labels are
/// assumed to be class indices, unless a class name is also a number.
std::vector<std::string> label_texts(const std::vector<std::string>& names, const std::string& first);

}  // namespace dtrain
