//! Ways of choosing kernels that are worth timing on an adapter, and names to remember them by.

use super::shader::Reduce;
use super::tuning::{Lanes, ManyRows, Tuning};

impl Lanes {
    fn name(&self) -> String {
        let by = match self.reduce {
            Reduce::Lane => "alone",
            Reduce::Workgroup => "by tree",
            Reduce::Subgroup => "by subgroup",
        };
        format!("{} of {} lanes {by}", self.lanes, self.workgroup)
    }
}

impl Tuning {
    /// How one row is multiplied, in words.
    pub fn one_row_name(&self) -> String {
        let numbers = if self.one_in_bytes { " in bytes" } else { "" };
        format!("{}, {} rows each{numbers}", self.matvec.name(), self.rows_per_lane)
    }

    /// How many rows are multiplied, in words.
    pub fn many_rows_name(&self) -> String {
        match self.many {
            ManyRows::Registers => "registers".to_owned(),
            ManyRows::Quads => "registers of four lanes".to_owned(),
            ManyRows::Tile { rows } => format!("tiles of {rows} rows"),
            ManyRows::TileF16 { rows } => format!("tiles of {rows} rows in f16"),
            ManyRows::Int8 => "tiles in bytes".to_owned(),
        }
    }

    /// This choice, but for how many rows are multiplied.
    pub fn with_many_rows_of(self, other: &Self) -> Self {
        Self { many: other.many, ..self }
    }

    /// Ways to multiply one row, the present one first, then by how likely they are better. `subgroup_lanes` is the
    /// adapter's smallest subgroup, or 1; in bytes only where `int8` says so.
    pub fn one_row_candidates(self, subgroup_lanes: u32, int8: bool) -> Vec<Self> {
        let subgroups = (subgroup_lanes >= 4).then_some((Reduce::Subgroup, subgroup_lanes.min(32)));
        let trees = [(Reduce::Workgroup, 8), (Reduce::Workgroup, 32)];
        let shared = subgroups.into_iter().chain(trees);
        let sizes = [128, 32, 256];
        let shared = sizes
            .into_iter()
            .flat_map(|workgroup| shared.clone().map(move |(reduce, lanes)| Lanes { reduce, lanes, workgroup }));
        let lanes: Vec<_> = shared.chain([Lanes::ALONE]).filter(|lanes| lanes.workgroup >= lanes.lanes).collect();
        let mut all = vec![self];
        for rows_per_lane in [self.rows_per_lane, if self.rows_per_lane == 4 { 2 } else { 4 }] {
            let ways = lanes.iter().map(|&matvec| Self { matvec, rows_per_lane, ..self });
            all.extend(ways.filter(|&way| way != self));
        }
        if int8 {
            let in_bytes = |way| [way, Self { one_in_bytes: true, ..way }];
            all = all.into_iter().flat_map(in_bytes).collect();
        }
        all
    }

    /// Ways to multiply many rows, the present one first. `subgroup_lanes` is the adapter's smallest subgroup, or 1; those
    /// that round only where `f16` or `int8` says so.
    pub fn many_rows_candidates(self, subgroup_lanes: u32, f16: bool, int8: bool) -> Vec<Self> {
        let mut ways = vec![self.many];
        if int8 {
            ways.push(ManyRows::Int8);
        }
        if f16 {
            ways.push(ManyRows::TileF16 { rows: 64 });
        }
        ways.extend([ManyRows::Tile { rows: 64 }, ManyRows::Tile { rows: 32 }]);
        ways.push(ManyRows::from_registers(subgroup_lanes));
        let is_first = |&(index, way): &(usize, ManyRows)| !ways[..index].contains(&way);
        ways.iter().copied().enumerate().filter(is_first).map(|(_, many)| Self { many, ..self }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn candidates_begin_with_the_present_choice_and_have_names_of_their_own() {
        for tuning in
            [Tuning::SOFTWARE, Tuning::WIDE_SOFTWARE, Tuning::GPU, Tuning::GPU.with_lanes(Reduce::Subgroup, 32)]
        {
            for (few, many) in [(1, (false, false)), (4, (true, false)), (8, (false, true)), (32, (true, true))].map(
                |(lanes, (f16, int8))| {
                    (tuning.one_row_candidates(lanes, int8), tuning.many_rows_candidates(lanes, f16, int8))
                },
            ) {
                assert_eq!((few[0], many[0]), (tuning, tuning));
                let names: BTreeSet<_> = few.iter().map(Tuning::one_row_name).collect();
                assert_eq!(names.len(), few.len(), "{names:?}");
                let names: BTreeSet<_> = many.iter().map(Tuning::many_rows_name).collect();
                assert_eq!(names.len(), many.len(), "{names:?}");
                for lanes in few.iter().map(|way| way.matvec) {
                    assert_eq!(lanes.lanes == 1, lanes.reduce == Reduce::Lane, "{lanes:?}");
                    assert!(
                        lanes.lanes.is_power_of_two() && lanes.groups() >= 1 && lanes.workgroup <= 256,
                        "{lanes:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn rounding_is_offered_only_where_it_was_asked_for() {
        let rounds = |way: &Tuning| way.one_in_bytes || matches!(way.many, ManyRows::Int8 | ManyRows::TileF16 { .. });
        assert!(!Tuning::GPU.many_rows_candidates(1, false, false).iter().any(rounds));
        assert_eq!(Tuning::GPU.many_rows_candidates(1, true, true).iter().filter(|way| rounds(way)).count(), 2);
        let few = Tuning::GPU.one_row_candidates(1, false);
        assert!(few.iter().all(|way| way.matvec.reduce != Reduce::Subgroup && !rounds(way)));
        assert!(Tuning::GPU.one_row_candidates(1, true)[..2].iter().any(rounds));
    }
}
