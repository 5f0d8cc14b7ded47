//! The checksum, against published values and however its input is cut.

use pagewise::model::Xxh64;

#[test]
fn known_values() {
    assert_eq!(Xxh64::of(0, b""), 0xEF46_DB37_51D8_E999);
    assert_eq!(Xxh64::of(0, b"a"), 0xD24E_C4F1_A98C_6E5B);
    assert_eq!(Xxh64::of(0, b"abc"), 0x44BC_2CF5_AD77_0999);
    assert_eq!(Xxh64::of(0, b"Nobody inspects the spammish repetition"), 0xFBCE_A83C_8A37_8BF1);
}

#[test]
fn where_it_is_cut_makes_no_difference() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
    for len in 0..bytes.len() {
        let expected = Xxh64::of(7, &bytes[..len]);
        for cut in [1, 3, 31, 32, 33, 64] {
            let mut hash = Xxh64::new(7);
            bytes[..len].chunks(cut).for_each(|piece| hash.update(piece));
            assert_eq!(hash.finish(), expected, "{len} bytes in pieces of {cut}");
        }
    }
}
