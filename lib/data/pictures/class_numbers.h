// The texts of class labels. The data may refer to a class by its number or by its name.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// Returns the text of the label of each class. If the labels of the data set are numbers, returns "0", "1",
/// ...; otherwise returns the names of the classes. `first` is one of the labels: if it is a number, all
/// labels are taken for numbers, unless the name of a class is also a number.
std::vector<std::string> label_texts(const std::vector<std::string>& names, const std::string& first);

}  // namespace dtrain
