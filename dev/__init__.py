"""Tools for those who maintain this project. Not installed with it."""
