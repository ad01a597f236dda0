"""All recipes, in the order in which the models are listed."""

from engine.training import classifier, translator, twin_recipes, vision
from engine.training.recipe import Recipe

RECIPES: dict[str, Recipe] = {
    recipe.id: recipe for recipe in (*twin_recipes.RECIPES, *translator.RECIPES, *classifier.RECIPES, *vision.RECIPES)
}
