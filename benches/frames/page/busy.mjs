// Keeps a core busy until it is terminated, as every thread of a software adapter does.
for (let turn = 0; ; turn++) Math.hypot(turn, turn);
