// Parts of `dtrain new` configurations for text.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct NewConfig;   // new_config.h
struct NewOptions;  // new_config.h

/// Number of tokens in the vocabulary of a proposed classifier.
inline constexpr int64_t kNewVocabulary = 8192;

/// Returns the number of tokens of a sample, for texts of `words` words on average.
int64_t length_for_words(double words);
/// Returns the section `model` of a network for texts of `length` tokens; `last` is the line of the last
/// layer.
std::string text_model(int64_t length, const std::string& last);

/// Returns true for a file with the extension .txt that is not a table: its lines do not agree on a number of
/// values between commas, semicolons, tabs, bars or blanks.
bool is_prose(const std::string& path);
/// Returns true for a folder that has .txt files in subfolders, or in the subfolders of its training split,
/// and no images there.
bool is_folder_of_texts(const std::string& folder);

/// Returns the configuration of a language model for a text file. Throws UserError if the file is too short.
NewConfig prose_config(const NewOptions& options);
/// Returns the configuration of a classifier for a folder with a folder of texts for each class. Throws
/// UserError if there are fewer than two classes.
NewConfig text_folder_config(const NewOptions& options);

}  // namespace dtrain
