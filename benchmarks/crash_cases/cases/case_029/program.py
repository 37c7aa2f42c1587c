"""Names the expression of faces with a model that was trained elsewhere."""

# The constructor of the model's class ends with a private method that the library has renamed.

import hashlib
import json

import numpy as np
import torch
from minikeras import Sequential, layers

torch.set_num_threads(1)

made = 0


class FacialExpressionModel:
    EMOTIONS_LIST = ["Angry", "Happy", "Neutral", "Sad"]

    def __init__(self, model_json_file, model_weights_file):
        global made
        made += 1
        with open(model_json_file) as json_file:
            loaded_model_json = json.load(json_file)
            self.loaded_model = Sequential()
            for settings in loaded_model_json["layers"]:
                self.loaded_model.add(layers.Dense(**settings))
            print("layers", len(self.loaded_model.layers))

        with open(model_weights_file) as weights_file:
            self.loaded_model.set_weights(json.load(weights_file))
        print("weights loaded")
        self.answer = self.loaded_model._make_predict_function()

    def predict_emotion(self, img):
        self.preds = self.answer(img)
        return FacialExpressionModel.EMOTIONS_LIST[np.argmax(self.preds)]


models = [FacialExpressionModel("model.json", "model_weights.json")]
print("models", len(models), "constructed", made, "files closed")
faces = np.random.RandomState(0).rand(6, 1, 9).astype("float32")
for number, face in enumerate(faces):
    print("face", number, models[0].predict_emotion(face))
print("preds", hashlib.sha256(models[0].preds.tobytes()).hexdigest())
