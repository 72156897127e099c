"""A disk that forgets what was not fsynced, for a process that ends in the middle of its work.

What a power cut leaves of files under a folder: contents as they were when the file was last fsynced, and names as they
were when their folder was. Real disks may keep more than that: names without contents is the other extreme.
"""

import os
from pathlib import Path


class ForgetfulDisk:
    """Follows fsync, and can put the files under `folder` back to what is certainly on the disk."""

    def __init__(self, folder, outside):
        self._folder, self._outside = folder, outside  # names that are not on this disk, at the top of the folder
        self._number, self._made = {}, 0  # every file and folder by its inode, which a later one may get
        self._names, self._contents = {}, {}
        paths = [folder, *folder.rglob("*")]
        for path in paths:
            self.made(path)
        for path in paths:
            self._remember(path)

    def made(self, path):
        """A file or folder was made. Its inode may have been another's."""
        self._made += 1
        self._number[Path(path).stat().st_ino] = self._made

    def synced(self, descriptor):
        """Contents of a file, or names in a folder, are on the disk."""
        self._remember(Path(f"/proc/self/fd/{descriptor}").readlink())

    def _remember(self, path):
        number = self._number[path.stat().st_ino]
        if path.is_dir():
            self._names[number] = self._listed(path)
        else:
            self._contents[number] = path.read_bytes()

    def _listed(self, path):
        return {entry.name: (self._number[entry.inode()], entry.is_dir()) for entry in os.scandir(path)}

    def cut(self, *, keep_names):
        """Leave what a power cut leaves."""
        now = {self._number[path.stat().st_ino]: path for path in [self._folder, *self._folder.rglob("*")]}
        image = {}

        def remember(number, folder):
            names = self._listed(now[number]) if keep_names and number in now else self._names.get(number, {})
            for name, (inside, is_folder) in names.items():
                if folder != self._folder or name not in self._outside:
                    image[folder / name] = None if is_folder else self._contents.get(inside, b"")
                    if is_folder:
                        remember(inside, folder / name)

        remember(self._number[self._folder.stat().st_ino], self._folder)
        for path in sorted(self._folder.rglob("*"), reverse=True):
            if path.relative_to(self._folder).parts[0] not in self._outside:
                path.rmdir() if path.is_dir() else path.unlink()
        for path in sorted(image):
            if image[path] is None:
                path.mkdir(mode=0o700)
            else:
                path.touch(mode=0o600)
                path.write_bytes(image[path])
