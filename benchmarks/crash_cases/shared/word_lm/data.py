"""The corpus of the language models: words of a Markov chain, as numbers."""

import torch
from markov import sentence_words


class Dictionary:
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    def __init__(self, size):
        self.dictionary = Dictionary()
        self.train = self.tokenize(size, 1)
        self.valid = self.tokenize(size // 5, 2)
        self.test = self.tokenize(size // 5, 3)

    def tokenize(self, size, seed):
        return torch.tensor([self.dictionary.add_word(word) for word in sentence_words(size, seed)])
