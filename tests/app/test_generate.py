"""`dtrain generate`: greedy decoding and random sampling, output as text and as JSON, stop texts, and errors."""
import os
import shlex
import subprocess

import support
from support import Case

TEXT = "the quick brown fox jumps over the lazy dog. "
MODEL = """\
seed: 5
model:
  inputs: {tokens: {shape: [16], dtype: int32}}
  layers:
    - embedding: {input_dim: 256, output_dim: 32, name: token}
    - position_embedding: {sequence_length: 16}
    - multi_head_attention: {num_heads: 4, causal: true, name: attention}
    - add: {inputs: [attention, position_embedding], name: middle}
    - layer_normalization
    - dense: {units: 64, activation: gelu}
    - dense: {units: 32, name: mlp}
    - add: {inputs: [mlp, middle]}
    - dense: {units: 256}
"""
REST = """\
dataset: {train: {text: {file: corpus.txt, sequence_length: 16, stride: 1}}}
strategy: single
train:
  epochs: 6
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
"""
WORDS = """\
model:
  inputs: {tokens: {shape: [4], dtype: int32}}
  layers:
    - embedding: {input_dim: 20, output_dim: 16}
    - dense: {units: 20, activation: softmax}
dataset: {train: {text: {file: corpus.txt, sequence_length: 4, stride: 1, tokens: words, vocabulary: 20}}}
train: {epochs: 20, batch_size: 8, loss: sparse_categorical_crossentropy, optimizer: {adam: {learning_rate: 0.05}}}
"""


class Generate(Case):
    def train(self, config=MODEL + REST):
        self.write("corpus.txt", TEXT * 30)
        self.fit(config=config)

    def samples(self, *arguments):
        return self.json("generate", "run", *arguments)["samples"]

    def text(self, *arguments):
        return self.samples(*arguments)[0]["text"]

    def test_a_model_continues_the_text_that_it_has_learned(self):
        self.train()
        prompt, expected = "the quick br", (TEXT * 3)[12:112]
        greedy = ("--prompt", prompt, "--temperature", "0", "--max-tokens", "100")
        document = self.json("generate", "run", *greedy)
        self.assertEqual(document["checkpoint"]["chosen"], "newest")
        self.assertEqual(document["samples"], [{"prompt": prompt, "sample": 0, "text": expected, "tokens": list(expected.encode()),
                                                "ended": "max_tokens"}])
        done = self.dtrain("generate", "run", *greedy)
        self.assertEqual(done.out, prompt + expected + "\n")
        self.assertRegex(done.err, r"^checkpoint: run/checkpoints/ckpt-\d+\.h5, step [\d,]+, the newest\n$")
        quiet = self.dtrain("generate", "run", *greedy, "--quiet")
        self.assertEqual((quiet.out, quiet.err), (done.out, ""))
        # A prompt may come from a file. It may be longer than the model's window.
        self.write("prompt.txt", TEXT + prompt)
        self.assertEqual(self.text("--prompt-file", "prompt.txt", *greedy[2:]), expected)
        with open(self.dir / "prompt.txt", encoding="utf-8") as file:
            piped = subprocess.run([support.BINARY, "generate", "run", "--prompt-file", "-", *greedy[2:]], cwd=self.dir, stdin=file,
                                   capture_output=True, text=True, check=True)
        self.assertEqual(piped.stdout, TEXT + prompt + expected + "\n")
        # With and without the cache, the generated text is the same, even after it has become longer than the model's
        # window.
        self.assertEqual(document["cache"], {"used": True, "bytes_per_text": 2 * 32 * 16 * 4, "bytes": 2 * 32 * 16 * 4})
        self.assertEqual(self.json("check", "config.yaml")["generate_cache"], 2 * 32 * 16 * 4)
        self.assertIn("`dtrain generate` caches", self.dtrain("check", "config.yaml").out)
        slow = self.json("generate", "run", *greedy, "--no-cache")
        self.assertEqual((slow["cache"], slow["samples"]), ({"used": False, "reason": "--no-cache was given"}, document["samples"]))
        # Text generation does not need the training data.
        os.remove(self.dir / "corpus.txt")
        self.assertEqual(self.text(*greedy, "--stop", "lazy", "--stop", "jumps over th"), "own fox ")
        stopped = self.samples(*greedy, "--stop", "fox")[0]
        self.assertEqual((stopped["text"], bytes(stopped["tokens"]), stopped["ended"]), ("own ", b"own fox", "stop"))

    def test_control_characters_are_escaped_only_on_a_terminal(self):
        self.train()
        out = self.dtrain("generate", "run", "--prompt", "the \x1bquick", "--temperature", "0", "--max-tokens", "1").out
        self.assertTrue(out.startswith("the \x1bquick"), out)

    def test_texts_depend_on_the_seed_and_their_number_only(self):
        self.train(MODEL + REST.replace("epochs: 6", "epochs: 1"))
        draw = ("--max-tokens", "40", "--seed", "3", "--temperature", "2.5")
        both = ("--prompt", "the ", "--prompt", "over ")
        all_ = self.samples(*both, "--samples", "3", *draw)
        self.assertEqual([(s["prompt"], s["sample"]) for s in all_],
                         [("the ", 0), ("the ", 1), ("the ", 2), ("over ", 0), ("over ", 1), ("over ", 2)])
        self.assertEqual(len({s["text"] for s in all_}), 6)
        for more in (("--no-cache",), ("--no-cache", "--batch-size", "1"), ("--batch-size", "1"), ("--batch-size", "4"), ("--set", "strategy={mirrored: {devices: [cpu:0, cpu:1, cpu:2]}}"),
                     ("--set", "strategy={pipeline: {devices: [cpu:0, cpu:1]}}"),
                     ("--set", "strategy={pipeline: {devices: [cpu:0, cpu:1], replicas: 2, microbatches: 3}}")):
            with self.subTest(more):
                self.assertEqual(self.samples(*both, "--samples", "3", *draw, *more), all_)
        self.assertEqual(self.samples("--prompt", "the ", *draw), all_[:1])
        self.assertNotEqual(self.text("--prompt", "the ", "--max-tokens", "40"), all_[0]["text"])
        few = self.samples("--prompt", "the ", "--samples", "3", "--top-k", "1", "--max-tokens", "40")
        greedy = self.text("--prompt", "the ", "--temperature", "0", "--max-tokens", "40")
        self.assertEqual({s["text"] for s in few}, {greedy})
        self.assertEqual(self.text("--prompt", "the ", "--top-p", "1e-9", "--max-tokens", "40"), greedy)
        # Texts are printed in order, each with a heading.
        lines = self.dtrain("generate", "run", *both, "--samples", "2", "--top-k", "1", "--max-tokens", "40", "--quiet").out
        self.assertEqual(lines.split("== prompt 1, sample 1 ==\nthe ")[0], "")
        self.assertIn("\n\n== prompt 2, sample 2 ==\nover ", lines)

    def test_a_cache_that_does_not_fit_is_an_error(self):
        if "sanitizers" in self.dtrain("--version").out:
            self.skipTest("sanitizers map more than they use")
        self.train(MODEL + REST.replace("epochs: 6", "epochs: 1"))
        command = f"ulimit -v 4000000; exec {shlex.quote(support.BINARY)} generate run --prompt a --samples 1000000 --batch-size 1000000"
        done = subprocess.run(["bash", "-c", command], cwd=self.dir, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"the cached keys and values of 1,000,000 texts need 4\.1 GB of memory, but only [\d.]+ GB is available \(ulimit -v\); "
                                      r"use a smaller --batch-size, or --no-cache")

    def test_words_and_probabilities(self):
        self.train(WORDS)
        text = self.text("--prompt", "The quick", "--temperature", "0", "--max-tokens", "3")
        self.assertEqual(text, " brown fox jumps")
        error = self.dtrain("generate", "run", "--prompt", "the cat", expect=2).err
        self.assertIn("--prompt: the word 'cat' is not in the vocabulary of the run, which has 8 words", error)

    def test_other_position_layers_give_the_same_bits_with_a_cache(self):
        grouped = "multi_head_attention: {num_heads: 4, key_dim: 6, value_dim: 5, num_key_value_heads: 2, rotary: {base: 100}, causal: true"
        model = MODEL.replace("position_embedding: {sequence_length: 16}", "sinusoidal_position_encoding: {name: position_embedding}")
        model = model.replace("multi_head_attention: {num_heads: 4, causal: true", grouped).replace("layer_normalization", "rms_normalization")
        self.train(model + REST.replace("epochs: 6", "epochs: 1"))
        draw = ("--prompt", "the quick brown fox jumps", "--prompt", "o", "--samples", "2", "--max-tokens", "50")
        document = self.json("generate", "run", *draw)
        self.assertEqual(document["cache"], {"used": True, "bytes_per_text": 2 * (6 + 5) * 16 * 4, "bytes": 4 * 2 * (6 + 5) * 16 * 4})
        self.assertEqual(self.samples(*draw, "--no-cache"), document["samples"])

    def test_models_without_a_cache(self):
        for layer, name in (("{lstm: {units: 8, return_sequences: true}}", "lstm"),
                            ("{conv1d: {filters: 8, kernel_size: 3, padding: causal}}", "conv1d")):
            with self.subTest(name):
                config = MODEL[:MODEL.index("  layers:")] + "  layers: [{embedding: {input_dim: 256, output_dim: 8}}, " + layer + ", {dense: 256}]\n"
                self.write("corpus.txt", TEXT * 30)
                self.fit(config=config + REST.replace("epochs: 6", "epochs: 1"), output=name)
                draw = ("generate", name, "--prompt", "the ", "--samples", "3", "--max-tokens", "30")
                document = self.json(*draw)
                reason = f"the layer '{name}' cannot compute one position at a time"
                self.assertEqual(document["cache"], {"used": False, "reason": reason})
                self.assertEqual(self.json(*draw, "--batch-size", "1")["samples"], document["samples"])
                self.assertIn(f"the keys and values of earlier tokens are not cached, because {reason}; the whole window is computed again", self.dtrain(*draw).err)

    def test_mistakes(self):
        self.train(MODEL + REST.replace("epochs: 6", "epochs: 1"))
        prompt = ("--prompt", "a")
        for arguments, expected in (
            ((), "give --prompt TEXT, or --prompt-file FILE"),
            (("--prompt", ""), "--prompt: the text is empty"),
            (("--prompt-file", "none.txt"), "none.txt"),
            ((*prompt, "--temperature", "-1"), "--temperature: expected a number of at least 0"),
            ((*prompt, "--temperature", "warm"), "--temperature: expected a number, found 'warm'"),
            ((*prompt, "--seed", "18446744073709551615"), "expected a whole number from 0 to 9223372036854775807"),
            ((*prompt, "--top-p", "0"), "--top-p: expected a number above 0 and at most 1"),
            ((*prompt, "--top-p", "1.5"), "--top-p: expected a number above 0 and at most 1"),
            ((*prompt, "--top-k", "0"), "expected a whole number of at least 1, found '0'"),
            ((*prompt, "--max-tokens", "0"), "expected a whole number of at least 1, found '0'"),
            ((*prompt, "--samples", "0"), "expected a whole number of at least 1, found '0'"),
            ((*prompt, "--samples", "1000001"), "--samples: expected at most 1000000 texts for each prompt, found 1000001"),
            ((*prompt, "--samples", "9223372036854775807"), "--samples: expected at most 1000000 texts for each prompt"),
            ((*prompt, "--stop", ""), "--stop: the stop text is empty"),
        ):
            with self.subTest(arguments):
                done = self.dtrain("generate", "run", *arguments, expect=2)
                self.assertIn(expected, done.err)
                self.assertEqual(done.out, "")

    def test_runs_that_are_no_language_models(self):
        self.fit("--epochs", "1", output="numbers")
        error = self.dtrain("generate", "numbers", "--prompt", "a", expect=2).err
        self.assertIn("the run has no tokenizer, because it was not trained on text; `dtrain generate` needs a language model", error)
        for name in ("good", "bad"):
            for number in range(4):
                self.write(f"reviews/{name}/{number}.txt", f"this is {name}")
        self.fit("--epochs", "1", output="classes", config="""\
model:
  inputs: {tokens: {shape: [8], dtype: int32}}
  layers: [{embedding: {input_dim: 256, output_dim: 4}}, global_average_pooling1d, {dense: {units: 2}}]
dataset: {train: {text: {directory: reviews}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""")
        error = self.dtrain("generate", "classes", "--prompt", "a", expect=2).err
        self.assertIn("the output 'dense' must be float32 with 8 rows (the positions) and at least 256 columns (a score for each token), but it is float32 of 2", error)


if __name__ == "__main__":
    support.main()
