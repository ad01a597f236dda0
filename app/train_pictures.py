"""The pictures of a training: loss and scores over its steps, and the maps of its heads at the step looked at.

Dimensions: L layers, H heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.charts_train import LINE, head_maps
from app.panels import is_dark
from app.shell import literal
from app.train_lesson import Course, Lesson
from app.train_plan import LESSONS
from app.train_queue import Seen
from app.train_turning import turning

LOSS, SCORES = 200, 226  # pixels
MAPS = 392  # of one head alone
BOTH = 240  # both of them, beside each other
BESIDE = 330  # of two, or in half of the page
MANY = 190  # of three or four beside each other


def pictures(drawn: Seen, at: int) -> None:
    """Draw one model, or two side by side on the same axes.

    Args:
        drawn: what there is.
        at: the step that is looked at.
    """
    lesson = LESSONS[drawn.plan.settings[0].kind]
    checkpoint = next(one for one in reversed(drawn.checkpoints) if one.step <= at)
    courses = [
        Course(setting, place, drawn.points, at, drawn.last, drawn.moves)
        for place, setting in enumerate(drawn.plan.settings)
    ]
    maps = [held.numpy() for held in checkpoint.maps]
    with st.container(key="train_pictures"):
        if len(courses) == 1:
            _alone(lesson, courses, maps[0])
            return
        for course, held, column in zip(courses, maps, st.columns(2, gap="large"), strict=True):
            with column:
                _beside(lesson, courses, course, held)


def _alone(lesson: Lesson, courses: list[Course], maps: np.ndarray) -> None:
    (course,) = courses
    left, right = st.columns([9, 13], gap="large")
    with left:
        turning(lesson.loss_figure(courses, 0, is_dark(), LOSS), "train_loss_0")
        st.caption(lesson.loss_words(course))
        turning(lesson.score_figure(courses, 0, is_dark(), SCORES), "train_score_0")
        st.caption(lesson.score_words(course))
    with right:
        with st.container(key="train_found"):
            st.markdown(lesson.found_words(course))
        _layers(lesson, course, maps, wide=True)
        st.caption(lesson.map_words(course.setting))


def _beside(lesson: Lesson, courses: list[Course], course: Course, maps: np.ndarray) -> None:
    place = course.place
    with st.container(key=f"train_found_{place}"):
        st.markdown(f"**{literal(lesson.title(course.setting))}**  \n{lesson.found_words(course)}")
    left, right = st.columns(2)
    with left:
        turning(lesson.loss_figure(courses, place, is_dark(), BOTH), f"train_loss_{place}")
    with right:
        turning(lesson.score_figure(courses, place, is_dark(), BOTH), f"train_score_{place}")
    _layers(lesson, course, maps, wide=False)
    if place == 0:
        st.caption(f"{lesson.loss_words(course)} {lesson.score_words(course)}")
    else:
        st.caption(lesson.map_words(course.setting))


def _layers(lesson: Lesson, course: Course, maps: np.ndarray, *, wide: bool) -> None:
    """Draw every head: one in each layer side by side, or else the best one large and all of them small."""
    layers, heads = maps.shape[:2]
    if heads == 1:
        size = MAPS if wide and layers < 3 else BESIDE
        for layer, column in enumerate(st.columns(max(2, layers))[:layers]):
            with column:
                name = f"layer {layer}: {lesson.head_name(course, layer, 0)}"
                _maps(lesson, course, maps[layer], name, (), size, f"{layer}")
        return
    layer, head = lesson.best(course)
    name = f"layer {layer}, head {head}: {lesson.head_name(course, layer, head)}"
    _maps(lesson, course, maps[layer, head : head + 1], name, (), MAPS, "best")
    for layer in range(layers):
        names = [f"head {head}\n{_in_lines(lesson.head_name(course, layer, head))}" for head in range(heads)]
        size = (MANY if heads > 2 else BESIDE) + LINE * max(name.count("\n") for name in names)
        _maps(lesson, course, maps[layer], f"layer {layer}", names, size, f"{layer}")


def _in_lines(name: str) -> str:
    """Put the number of a head below its words: on a telephone four heads stand beside each other."""
    words, _, number = name.rpartition(" ")
    return f"{words.rstrip(',')}\n{number}" if words else number


def _maps(
    lesson: Lesson, course: Course, weights: np.ndarray, title: str, names: Sequence[str], size: int, key: str
) -> None:
    setting = course.setting
    figure = head_maps(
        weights, setting.tokens, visible=lesson.visible(setting), marked=lesson.marked(setting), title=title,
        names=names, dark=is_dark(), size=size,
    )  # fmt: skip
    turning(figure, f"train_map_{course.place}_{key}")
