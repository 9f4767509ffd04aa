# SPDX-License-Identifier: MIT
"""Energies and forces of two small systems under several layouts, printed to the last digit: energies.py [moongrid]"""
import sys

if sys.argv[1:] == ["moongrid"]:
    import moongrid_gpaw  # noqa: F401
from ase.build import bulk, molecule
from gpaw import GPAW, PW, FermiDirac
from gpaw.mpi import world

for parallel in ({"kpt": 2, "domain": 2}, {"band": 2, "kpt": 2}, {"domain": 2, "band": 2}):
    atoms = bulk("Si")
    atoms.rattle(0.05, seed=1)
    atoms.calc = GPAW(mode=PW(150), kpts=(2, 2, 2), nbands=8, occupations=FermiDirac(0.1), parallel=parallel, txt=None,
                      symmetry="off", convergence={"energy": 1e-5})
    energy, forces = atoms.get_potential_energy(), atoms.get_forces()
    if world.rank == 0:
        print("Si", parallel, repr(float(energy)), forces.tolist(), flush=True)
atoms = molecule("H2", vacuum=2.0)
atoms.calc = GPAW(mode="fd", h=0.3, nbands=4, parallel={"domain": 2, "band": 2}, txt=None, convergence={"energy": 1e-4},
                  occupations=FermiDirac(0.1))
energy = atoms.get_potential_energy()
if world.rank == 0:
    print("H2", repr(float(energy)), atoms.get_forces().tolist() if world.size == 1 else "", flush=True)
