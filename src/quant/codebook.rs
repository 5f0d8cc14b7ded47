//! Codebooks: the points that the indices of the IQ formats stand for.
//!
//! Their blocks do not hold weights but, for four or eight weights at once, the number of a point on a small grid. A
//! point is eight digits of base 3, or four of base 8, each standing for a magnitude. Codebooks are data of GGUF's
//! formats, as fixed as the sizes of the blocks.
//!
//! A shader has no table: `const` arrays that are indexed by a variable are copied into every invocation by some
//! compilers. Instead, every weight buffer of such a format ends in the codebook, 512 to 4096 bytes
//! ([`super::Format::codebook`]), and the WGSL piece finds it there.
//!
//! Here, the points lie in ascending order, so only the gaps between them are written down, a character each.

use std::sync::LazyLock;

use super::blocks;

/// Points of eight 2-bit digits, the first weight's lowest.
pub(super) type Octets = LazyLock<Vec<u16>>;
/// Points of four 3-bit digits, the first weight's lowest.
pub(super) type Quads = LazyLock<Vec<u16>>;

/// The points from their gaps: a character's distance from `$`, plus 90 for every `!` before it.
fn points(gaps: &str) -> Vec<u16> {
    let mut points = Vec::with_capacity(gaps.len());
    // The first gap is counted from before zero.
    let mut next = 0;
    for byte in gaps.bytes() {
        match byte {
            b'!' => next += 90,
            b'$'.. => {
                next += u16::from(byte - b'$');
                points.push(next - 1);
            }
            // Line breaks.
            _ => {}
        }
    }
    points
}

/// The same with base-3 digits spread to two bits each.
fn octets(gaps: &str) -> Vec<u16> {
    let spread = |mut point: u16| {
        (0..8).fold(0, |code, digit| {
            let bits = (point % 3) << (2 * digit);
            point /= 3;
            code | bits
        })
    };
    points(gaps).into_iter().map(spread).collect()
}

/// Octets as a shader reads them: two a word.
pub(super) fn octet_words(octets: &Octets) -> Vec<u32> {
    octets.as_chunks::<2>().0.iter().map(|&[low, high]| u32::from(low) | u32::from(high) << 16).collect()
}

/// Quads as a shader reads them: the magnitudes, a byte each.
pub(super) fn quad_words(quads: &Quads, magnitude: fn(u16) -> u8) -> Vec<u32> {
    quads.iter().map(|&quad| u32::from_le_bytes(digits(quad).map(magnitude))).collect()
}

/// The digits of a quad.
pub(super) fn digits(quad: u16) -> [u16; 4] {
    [0, 3, 6, 9].map(|shift| (quad >> shift) & 7)
}

/// Digit `i` of an octet.
pub(super) fn digit(octet: u16, i: usize) -> u8 {
    let [digit, _] = ((octet >> (2 * i)) & 3).to_le_bytes();
    digit
}

/// The weights of a chunk's four octets: `weight(digit, number)`.
pub(super) fn octet_weights(octets: [u16; 4], weight: impl Fn(f32, usize) -> f32) -> blocks::Quads {
    let at = |i: usize| weight(f32::from(digit(octets[i / 8], i % 8)), i);
    std::array::from_fn(|q| std::array::from_fn(|j| at(4 * q + j)))
}

/// The weights of a chunk's eight quads: `weight(magnitude, number)`.
pub(super) fn quad_weights(
    quads: [u16; 8],
    magnitude: fn(u16) -> u8,
    weight: impl Fn(f32, usize) -> f32,
) -> blocks::Quads {
    std::array::from_fn(|q| {
        let magnitudes = digits(quads[q]).map(magnitude);
        std::array::from_fn(|j| weight(f32::from(magnitudes[j]), 4 * q + j))
    })
}

/// The magnitude of an octet's digit in the IQ2 formats: 8, 25 or 43.
pub(super) fn iq2_magnitude(digit: f32) -> f32 {
    (0.5 * digit + 16.5) * digit + 8.0
}

/// Eight signs from the seven that are stored: the number of minuses is even.
pub(super) fn eight_signs(seven: u32) -> u32 {
    let seven = seven & 127;
    seven | ((seven.count_ones() & 1) << 7)
}

/// The 32 signs of a chunk from four times seven bits.
pub(super) fn chunk_signs(sevens: u32) -> u32 {
    (0..4).fold(0, |signs, octet| signs | (eight_signs(sevens >> (7 * octet)) << (8 * octet)))
}

/// The magnitude with the sign at bit `i`.
pub(super) fn signed(magnitude: f32, signs: u32, i: usize) -> f32 {
    if (signs >> i) & 1 == 1 { -magnitude } else { magnitude }
}

/// 256 octets of IQ2_XXS.
pub(super) static IQ2_XXS: Octets = LazyLock::new(|| octets(IQ2_XXS_GAPS));
/// 512 octets of IQ2_XS.
pub(super) static IQ2_XS: Octets = LazyLock::new(|| octets(IQ2_XS_GAPS));
/// 1024 octets of IQ2_S.
pub(super) static IQ2_S: Octets = LazyLock::new(|| octets(IQ2_S_GAPS));
/// 2048 octets of IQ1_S and IQ1_M.
pub(super) static IQ1: Octets = LazyLock::new(|| octets(IQ1_GAPS));
/// 256 quads of IQ3_XXS.
pub(super) static IQ3_XXS: Quads = LazyLock::new(|| points(IQ3_XXS_GAPS));
/// 512 quads of IQ3_S.
pub(super) static IQ3_S: Quads = LazyLock::new(|| points(IQ3_S_GAPS));

const IQ2_XXS_GAPS: &str = r#"
    %&&&&&&*&(&&&**(&*&*0,&*(2B00&6H>&*.&*&(0.&*0*&(028&.<&6B6*(&*0(&*&:<<\.j&*.,60*(2*06,.T.V*0(08NDF2h&*6@>(hRP&*:
    4,&V,T&t&*62L@8!*<0T!HX&**(&**,(.&*66@,(<,<,.B*0H4:.`v&*6(VN(.\D6*(*&H*<>Rjt&<nJN.*D``r*6<BL\BH(z&R!P!!F&*8@@00d
    l&*(26HDF:86Jv|n*0*R:L^V8.|!!$P!\F:Bn!*!!xT
"#;

const IQ2_XS_GAPS: &str = r#"
    %&&&&&&&&&&&&(&&&&&&&(&*&&&(&(&.&&&&&&&&&&*&&&(&**(&*6&&&(&*.&*(2,8&&&&&&&(&*&&&(&&(.&*6&&&(&*.&*.,@&*2(&@<&&&&&
    &*(*&**06,&&*6@*86*P(.&&&&&&&(&*&&&(&*,&&*6&&&(&*.&*60&2&&(66H&&&(&*.&(&0*@&*6Z0:T&*&408:(RhN&&&&&&&*.&*66.&*6*4
    D8F<(&*4&Z@.D04`(*&.:82^0<0J(&8&&&&&&&(&*&&&&&&*(*&*6&&&(&*.&*6(4,&*&2&Z&&&(&(&.&*604&*0*P.,:*R&*6(,,F.8*4Dr&&&(
    &**(&*6@&*(2&XBV&&*.,6.6,*T*LD:,04,F@.&!8<&*60,08&!02B42p6(P|XVdF,F&&&(&*,&&*6&:&&&&(6.*J6H&4*(&*&&2648BR8J@*4:.
    &:,!*F*,.(&*624<8@n88(>**dJ&P!$LJ`DH&(&.,RR*F(&(8@6HL!Z88.&(T**Z&R&J4
"#;

const IQ2_S_GAPS: &str = r#"
    %&&&&&&&&&&&&(&&&&&&&(&&&&&&&(&*((&&&&&&&&(&*&&&(&&&&(&(&*&&*&*&&&(&*,&&&&&(2(((,,&&&&&&&(&&&&&&&&&&&&&&&*&&&&(&
    (&*&&&&&&&&&(&(&&&&&&&(&*&&&(&*.&&&&(2(&(&*.&*6&&&(&&&&((&&&&&&&&(&*(,2&&*&&&(,(&(&*.,6.&,(&.F0&&&&&&&(&&(&&&(&&
    &&&&&(&&((&(&*&&&&&&&&&&&&(&&&&&&&(&*&&&(&4&(&(*&*(*&4&*6&&&(&&&&(&(&&&&&&&(&*&&&(&*.&&&&&&&(&*&&&(&*.&*6(&(&*.&
    *6>&&&&&(&(,&&&(&*.&<&&&(&*.&*4:.*62L&&&(&&&&((&&*&&,*,(2&&*&&*,&&*&*.&*6,0(&(*<&4(&&&&(&(&*&&&(&*.&*6(&(&*.&*2(
    @&*64J(*&4&*>6&&*^:0@0&8&&&&&&&&&&&(&&&&&&&&&&&*&*(&(&*&&&(&&&&&&*&&&&&&&(&*&&&(&*.&*&&&**(&(&*.&<&&&&&&&&&&&&(&
    &&&&&&(&*&&&(&*.&&&&&&&(&*&&&(&*,&&*6&&&(&*.&*6:*&(&&&&(&*&&&(&*0*6&&&(&*.&*622&*6Z&&&(&&&&&&&(&&&&&&&(&*&&&(&4&
    &&&&&&(&*&&&(&*.&*6(&(&*.&*4&@&&&&&&&(&*&&&(&*.&*6&&&(&*.&*6@&*2(Z&&&(&*.&*,.@&*6Z4N8(&&(&&&(&*(&(&*0*6&&&(&*.&*
    642*62D,(&(&*.&*6@&*6,424f4&*L80>xP,&&&(&(&(*&*&&&(,(*&4&(&&&&(&*&&&(&4&*4&((&&4&*R&&&&&&&(,&&&(&*.&*6&&&(&*.&*6
    ,8&*4&Z(*&4&*J,&<:X:&06,&(&&&&**&&&(&*.&*6(*&4&*,J&*6V(&&&(&*.&*622&*6N(,D4F&*2(X&F(!46(((,*&&*J*@:F*0(&B(&4(&*6
    F2*4!0X4VR8@&.&(H8
"#;

const IQ1_GAPS: &str = r#"
    %&&&&&')&(&)*&&,)&(&))&(&(%*&&&%)*(&(&(&&&%+*&&,)&(&))&(&)**)(&&(&&''&&(&/&&,***((%3***&%%,&&,&((%%&%%&&&&&&&-'&
    &&&%%&2(0&*&&&'%(&**&(/&(&))&(&)*(,)&(&))&(&)*&()%*,%'*&(0&&&*)&(&))&(&)**'')&&&&))&(&.%&()%*&*(&(&%'0&&)'*&&&&&
    &&(&(*(%%%%%%&&(,,&*&4&&,))&(&&&(&,*&&,*(&)%&%'()'%%&&&%%&(&&*(&'%&%%&&%'(&(&&%%&&&&&&&&%%)%%%%&%&&%%&&&%%&&%%&%
    %&%%&&*&%%,%%&&((&%%&&&'%%%'&%&%%*''&,(0(,*&&&&(&&%%&&&**&.2&&(&'+%%&(&%%&%%((,'%&&((&-++&+&&&&&&((&**('.&(&))&&
    &&)**'')&(&))&&&&)*&(*+%(*&&&&%%,))&**)&&')&(&)*(&**)&&')&(&),&&*,%%&(&&&*,*&(''0***&(&(&%'(&&.&'%&&&&&&*)&)****
    )%*)&(,.&(&))&(&)*&.)&(&.&(&,'&(*.&(&*&&&*))&)%)&(&.&(&)*(&*)&(&))&(&)*(,0(&&&&&&4('((%&&&(&%%&&(&*&&&&%%&%)&&&&
    &(&&)%%/*&&,*.&(((-).*0'-*&&&&%%)%&&&&(&&&&)%*'%&(&&%%&&((&&%%&&%&%%%%'&%%&(%%&(&%%&%)&&&'')%&&&&(&&&&'%%&%&(&&(
    '((%*&&,*'()+)&(&(&&&**&&&**'%'%'%&(&&(((&%%%%&&&&%'*&(&%%(&&&44&&*&&((2.*&%%&(&(&&(&(&(&%%&*&,&*&'%(&*&%%&&%%%%
    &(%%&&&%%&&%%%%%%%%&&%%&(&*&%%&&((&(*&(&&,&(&&%%&(&-)&&'%(-%*&%%%%''&&&&%%&%%%&%%%%%&%%%%&&*&&&%%&'&%(&%%%%&&%%%
    %%&%&&%%&&%%%%%%%&%%%%%%%%%%&%%%%%&&%'%%%&%%%%'&%%&&%%%&%%'&%&%&%%%%%%%''%%%%%%%%%%%%%&&%'(&%%%%&'('&%%%)%%&&(&(
    +)&&&&%%%%&&%%+)&&&&(*'%&(&&%%&**&%%&&%%%%%%%%&&%%&''''&%%%%*,'+(%(%&*&%''%%%(&&&&+'&%%&&0,&&*,*(%%&&&&&'1,*&&&(
    &*%'&*'''%&*%'()'&*(&0(&/%(,%%'1*(,3%&%'&(&&&&&&&&%%&%%&&,%'&&%%%%&&&(*&&&'%&2%%&&%&%%&'&%%&+&%&'%&%'&%%))*))%%&
    (&&&&%%%&%(&'&&((&%%&'&'3&**.&(&***),)&*(*&&&&%'%%(&%%&&(('%))*&%'0(%1&(&(&&(%'++'&*(&(&.&(&))%&&&*)&(&))&(&)*&&
    &**&(&&&%%%)&&*')&&*)&(&))&(&/&(*)&(&))&(&1(0&+'(&&(2(0*(&(*&&%'&(&%%&%)%%&&&&&&&&&,2(&**&(%%('%&(')*+(*&(&))&(&
    &'*&(*'&&(&))&(&)%)&&,*&&&&&&(&&..&*)&(&))&(&)*&&1&(&))&(&)*(%%**(&*&&,%)*&&&**&&&&(&&&&&&&()%&%%&(&,&*&&(&&&**&
    (*,&&&&&&,&*,&/'&&((&,(,&&%%%%&%%&,&*%%&(*&(&&%%&%%&'''%&&%%&&%%%%%%%%&&%%&''&(%%%%&%%&&&&&&*('&)&*&%'%&%&*&)%(%
    '%%,&&*.&**((&&%'(%-*(&*,&&&&&&&%%&&(&&&&&&%%&(&%'&&*&&(&(,--,&&&(&(0*&%%1&(&))&(&)*&&&/&(&))&(&)''&&&%3&''&&&&.
    )&'&1(&%+((&)*(&*)&(&))&(&5**&*'%&&&'%%%*@&&&&&,&(&*&%%&*(&&%%&(&&4*('&',&''&%%'&0((%&'&&(&(&.&(&/&&&/&(&))&(&),
    (''*,((&(&/)1&(&.&(&/&&1&(&))&(&
"#;

const IQ3_XXS_GAPS: &str = r#"
    %&&)&(%&+-=&(&)&+('&+/0,&&)+&+&(.*2(*%&/G78)/0&(*74W;8(&924&)&+&)&&/%<&++&S&)&++F*&2-14/(GL(670q2D&+&)&('-C&&'&+
    +?(%,&+*%&1%18+(P(E2<8.?i&/;@+&+&91)*&2-/&?&)19436a37**0?C69L98/2&0(q83%4*5BCI/E29q'&2V;;,*4;C2D,MA/(G,;sP2V4&2A
    DBIH*jEIUL2V&&%64P.N?):129E4C&6h
"#;

const IQ3_S_GAPS: &str = r#"
    %%%'&%%%&&&%(*)&'&&&)&+''%%%&(%(''(&(+1()*%(&%'''('(*'&&&1',*('&+&'*(&1&('/(&'**'*3.&0&()*(&3)/'&253+&&0&()1(8%%
    &(%&&&%&+'&2&'-*%&'&()+'*+&2*&.'&%(**'.'.+''%'**%()5*/&)&1&+(&(9+'*+&3K('1&?&)&+0(5*,%&&&%&&&'&(%&+&&'&1%'&'&*'(
    ''('*+<''.&)+&.(.'(&'(-&)&+*2/*-'+'(='+)-1%/1,&).@(8(1&/)>+&&&'+&&)&'&.*,&&+)&14.(&.*.&0=+()&(%-&(*2,*)(+5*(1+&/
    )..177D&1&/G(**(''++4.)&&+*)**(8&))(.)3'*0)&)&+(G&6/%=0&.E=58<)//*=*(*2(''0*)&&)+-D*-.)*1;)%31)0**'0.0H07&[D&2[&
    &0&944+A:6*/)*,0)3Y232'=89?M&Y('-&0&0*4+/3&@'(*'+5=<'2:(*)<N4D;K
"#;
