/* test_distributions.c - tails and quantiles against 60-digit values (mpmath 1.3, betainc and
 * erfinv).
 *
 * The bound is 1e-13 relative, in the tails too: the exponent of a tail of e^-500 carries 500
 * roundings of half an ulp, 6e-14, and the continued fraction a few more.
 */
#include "linalg/stat.h"
#include "test.h"

static bool close(double got, double want)
{
    return fabs(got - want) <= 1e-13 * fabs(want);
}

static void student(void)
{
    /* clang-format off */
    static const struct {
        double t, df, two_sided;
    } table[] = {
        {0.001, 1, 0.99936338043983888211},
        {0.5, 1, 0.70483276469913345165},
        {1.96, 1, 0.30034289177603314936},
        {5, 1, 0.12566591637800236763},
        {15, 1, 0.042378609269892824388},
        {40, 1, 0.015912179824051626637},
        {0.001, 2, 0.99929289339559008147},
        {0.5, 2, 0.66666666666666666667},
        {1.96, 2, 0.18905730960173226958},
        {5, 2, 0.037749551350623725818},
        {15, 2, 0.004415032600042051842},
        {40, 2, 0.0006244146721847406375},
        {0.001, 3, 0.999264894969460938},
        {0.5, 3, 0.65144796484815099444},
        {1.96, 3, 0.14485220856485365522},
        {5, 3, 0.015392438073302300987},
        {15, 3, 0.0006431193269336653191},
        {40, 3, 0.000034380680789158528283},
        {0.001, 4.5, 0.99924490651215160188},
        {0.5, 4.5, 0.64054950207404714758},
        {1.96, 4.5, 0.11365024823638530215},
        {5, 4.5, 0.0054763583595199004589},
        {15, 4.5, 0.000051562357754539595756},
        {40, 4.5, 6.4495652129209981571e-7},
        {0.001, 7, 0.99923001724499884374},
        {0.5, 7, 0.63240713568928421635},
        {1.96, 7, 0.090819695368181207269},
        {5, 7, 0.0015652779531728245826},
        {15, 7, 1.4051696248093967618e-6},
        {40, 7, 1.5902179984850370469e-9},
        {0.001, 15, 0.99921529381382316526},
        {0.5, 15, 0.62433011352007556121},
        {1.96, 15, 0.068844166292365597292},
        {5, 15, 0.00015836951462202714481},
        {15, 15, 1.9412759304364389865e-10},
        {40, 15, 1.1690661240866398046e-16},
        {0.001, 29, 0.99920896297836223822},
        {0.5, 29, 0.62084808419378136402},
        {1.96, 29, 0.059667795519591323344},
        {5, 29, 0.000025366315735423232227},
        {15, 29, 3.3590540615815952991e-15},
        {40, 29, 6.3468773297293479876e-27},
        {0.001, 33, 0.99920813639964636299},
        {0.5, 33, 0.62039301790419052486},
        {1.96, 33, 0.058485107149877766675},
        {5, 33, 0.000018446971682512537337},
        {15, 33, 2.6981404181387921064e-16},
        {40, 33, 1.5303084411712262588e-29},
        {0.001, 100, 0.99920410776010340794},
        {0.5, 100, 0.61817356583088657198},
        {1.96, 100, 0.052778901366229666043},
        {5, 100, 2.450173413503800423e-6},
        {15, 100, 2.4247339884611469971e-27},
        {40, 100, 2.4621076021400708171e-63},
        {0.001, 1304, 0.99920226852624267936},
        {0.5, 1304, 0.61715943892069104549},
        {1.96, 1304, 0.050208497380152501925},
        {5, 1304, 6.5137069421752326694e-7},
        {15, 1304, 4.8499050614739307867e-47},
        {40, 1304, 5.7621461402215853223e-229},
        {0.001, 10000.0, 0.99920213551905249805},
        {0.5, 10000.0, 0.61708607932323341436},
        {1.96, 10000.0, 0.050023520231833049539},
        {5, 10000.0, 5.8303266136626472905e-7},
        {15, 10000.0, 2.5833150399391761605e-50},
        {0.001, 1000000.0, 0.99920211577164908982},
        {0.5, 1000000.0, 0.61707518747237138777},
        {1.96, 1000000.0, 0.049996067585269790686},
        {5, 1000000.0, 5.733997870890741569e-7},
        {15, 1000000.0, 7.4362647672103856418e-51},
        {0.001, 1000000000.0, 0.99920211557237734605},
        {0.5, 1000000000.0, 0.61707507756199420732},
        {1.96, 1000000000.0, 0.049995790573729595095},
        {5, 1000000000.0, 5.7330324039516284309e-7},
        {15, 1000000000.0, 7.3420261447368381661e-51},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double got = frgi_t_two_sided(table[i].t, table[i].df);
        CHECK_SAYS(close(got, table[i].two_sided), "P(|T| > %g) at %g: %.17g, expected %.17g",
                   table[i].t, table[i].df, got, table[i].two_sided);
        CHECK(frgi_t_two_sided(-table[i].t, table[i].df) == got);
    }
}

static void fisher(void)
{
    /* clang-format off */
    static const struct {
        double f, d1, d2, upper;
    } table[] = {
        {0.001, 1, 50, 0.97489877542994417138},
        {0.9, 1, 50, 0.347344669502621736},
        {1.1, 1, 50, 0.29930941318353406353},
        {5, 1, 50, 0.02984023273726962934},
        {100, 1, 50, 1.6077334688335436574e-13},
        {0.001, 3, 29, 0.9999552235636661901},
        {0.9, 3, 29, 0.45309633863033641113},
        {1.1, 3, 29, 0.36498516046771363828},
        {5, 3, 29, 0.006458368737405290825},
        {100, 3, 29, 2.1422023432985863114e-15},
        {0.001, 10, 50, 0.9999999999999621879},
        {0.9, 10, 50, 0.54005831738220714376},
        {1.1, 10, 50, 0.38055195380404104992},
        {5, 10, 50, 0.000051857903599739074707},
        {100, 10, 50, 1.7329608910543268036e-29},
        {0.001, 2, 1000000.0, 0.99900049983437399215},
        {0.9, 2, 1000000.0, 0.40656998906176168246},
        {1.1, 2, 1000000.0, 0.33287148647174374182},
        {5, 2, 1000000.0, 0.0067381154487430593984},
        {100, 2, 1000000.0, 3.7574583519492081521e-44},
        {0.001, 40, 1000000.0, 1.0},
        {0.9, 40, 1000000.0, 0.65091453195281586768},
        {1.1, 40, 1000000.0, 0.3060318733399597472},
        {5, 40, 1000000.0, 3.7897425375166644348e-23},
        {0.001, 200, 1000000.0, 1.0},
        {0.9, 200, 1000000.0, 0.84175802416235741722},
        {1.1, 200, 1000000.0, 0.15830609977250628946},
        {5, 200, 1000000.0, 1.7626755794648003394e-106},
        {0.001, 3.5, 7.5, 0.99998911544730622367},
        {0.9, 3.5, 7.5, 0.49828443792842342402},
        {1.1, 3.5, 7.5, 0.4156149299869387186},
        {5, 3.5, 7.5, 0.030672751567306929902},
        {100, 3.5, 7.5, 1.7259125233798121913e-6},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double got = frgi_f_upper(table[i].f, table[i].d1, table[i].d2);
        CHECK_SAYS(close(got, table[i].upper), "P(F > %g) at %g, %g: %.17g, expected %.17g",
                   table[i].f, table[i].d1, table[i].d2, got, table[i].upper);
    }
    /* F(1, d) is the square of t(d) */
    for (double t = 0.25; t < 20; t *= 1.7)
        CHECK(close(frgi_f_upper(t * t, 1, 12), frgi_t_two_sided(t, 12)));
}

static void quantiles(void)
{
    /* clang-format off */
    static const struct {
        double p, z;
    } normal[] = {
        {1e-300, -37.047096299361199237},
        {1e-100, -21.273453560965324294},
        {1e-20, -9.2623400897984075796},
        {1e-05, -4.2648907939228246102},
        {0.025, -1.9599639845400542118},
        {0.3, -0.52440051270804081597},
        {0.51, 0.025068908258711058033},
        {0.9, 1.2815515655446005935},
        {0.975, 1.9599639845400538556},
        {0.9995, 3.2905267314919257787},
    };
    static const struct {
        double p, df, t;
    } student_t[] = {
        {0.6, 1, 0.32491969623290624903},
        {0.9, 1, 3.0776835371752541331},
        {0.975, 1, 12.706204736174693314},
        {0.9995, 1, 636.61924876878972983},
        {0.6, 2, 0.28867513459481281549},
        {0.9, 2, 1.8856180831641270225},
        {0.975, 2, 4.3026527297494617894},
        {0.9995, 2, 31.599054576445363413},
        {0.6, 3, 0.27667066233268984701},
        {0.9, 3, 1.6377443536962103222},
        {0.975, 3, 3.1824463052837084359},
        {0.9995, 3, 12.923978636687964322},
        {0.6, 5, 0.26718086570414506569},
        {0.9, 5, 1.4758840488244812516},
        {0.975, 5, 2.5705818356363147828},
        {0.9995, 5, 6.8688266258812751318},
        {0.6, 30, 0.25560536495191271444},
        {0.9, 30, 1.3104150253913957112},
        {0.975, 30, 2.0422724563012378878},
        {0.9995, 30, 3.6459586350420628079},
        {0.6, 1000, 0.25341451583949870728},
        {0.9, 1000, 1.282398721460924564},
        {0.975, 1000, 1.9623390808264081039},
        {0.9995, 1000, 3.3002826484239441558},
        {0.6, 1000000.0, 0.253347170537841622},
        {0.9, 1000000.0, 1.2815524121299386069},
        {0.975, 1000000.0, 1.9599663568141066553},
        {0.9995, 1000000.0, 3.2905364612487221165},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof normal / sizeof *normal; i++) {
        const double got = frgi_normal_quantile(normal[i].p);
        CHECK_SAYS(close(got, normal[i].z), "z of %g: %.17g, expected %.17g", normal[i].p, got,
                   normal[i].z);
    }
    for (size_t i = 0; i < sizeof student_t / sizeof *student_t; i++) {
        const double got = frgi_t_quantile(student_t[i].p, student_t[i].df);
        CHECK_SAYS(close(got, student_t[i].t), "t of %g at %g: %.17g, expected %.17g",
                   student_t[i].p, student_t[i].df, got, student_t[i].t);
        CHECK(frgi_t_quantile(1 - student_t[i].p, student_t[i].df) < 0);
    }
    /* a quantile and its tail undo each other */
    for (int i = 0; i < 200; i++) {
        const double df = exp(12 * test_uniform()), p = pow(10, -9 * test_uniform());
        const double t = frgi_t_quantile(1 - 0.5 * p, df);
        CHECK_SAYS(fabs(frgi_t_two_sided(t, df) - 2 * (1 - (1 - 0.5 * p))) <= 1e-12 * p,
                   "df %g, p %g", df, p);
    }
}

/** The z >= 0 with P(Z > z) = q <= 1/2: the bracket is halved until long double has nothing
 *  between. */
static long double bracketed(double q)
{
    const long double root = sqrtl(0.5L);
    long double low = 0, high = 40;
    for (;;) {
        const long double z = 0.5L * (low + high);
        if (z <= low || z >= high) {
            return z;
        }
        const bool left = q > 0.25 ? 0.5L - q > 0.5L * erfl(z * root) : 0.5L * erfcl(z * root) > q;
        low = left ? z : low;
        high = left ? high : z;
    }
}

/** 1e-15 relative over (1e-300, 1), the neighbours of 1/2 included: a step carries the roundings of
 *  z / sqrt 2 (two halves of an ulp), of erf or erfc (one or two ulps, which count by 1 / z^2 far
 *  out) and of its sum. */
static void inverse_normal(void)
{
    for (int i = 0; i < 300; i++) {
        const double u = test_uniform();
        const double q = i % 3 == 0   ? 0.5 * u
                         : i % 3 == 1 ? 0.5 * exp(-690 * u)
                                      : 0.5 - 0.5 * exp(-36 * u); /* down to ulps of 1/2 */
        if (q <= 0 || q >= 0.5) {
            continue;
        }
        const double z = frgi_normal_quantile(q), mirror = frgi_normal_quantile(1 - q);
        CHECK_SAYS(fabsl(z / -bracketed(q) - 1) <= 1e-15L, "z of %.17g: %.17g", q, z);
        CHECK_SAYS(fabsl(mirror / bracketed(1 - (1 - q)) - 1) <= 1e-15L || 1 - q == 1 ||
                       1 - q == 0.5,
                   "z of 1 - %.17g: %.17g", q, mirror);
    }
}

static void edges(void)
{
    CHECK(frgi_t_two_sided(0, 5) == 1);
    CHECK(frgi_t_two_sided(INFINITY, 5) == 0);
    CHECK(frgi_t_two_sided(1e200, 1) == 0);
    CHECK(isnan(frgi_t_two_sided(NAN, 5)) && isnan(frgi_t_two_sided(1, 0)) &&
          isnan(frgi_t_two_sided(1, NAN)));
    CHECK(close(frgi_t_two_sided(1.96, INFINITY), 2 * frgi_normal_upper(1.96)));
    CHECK(frgi_t_quantile(0.5, 3) == 0 && isinf(frgi_t_quantile(1, 3)) &&
          isinf(frgi_t_quantile(0, 3)));
    CHECK(isnan(frgi_t_quantile(1.5, 3)) && isnan(frgi_t_quantile(0.5, -1)));
    CHECK(frgi_f_upper(0, 2, 3) == 1 && frgi_f_upper(-1, 2, 3) == 1 &&
          isnan(frgi_f_upper(1, 0, 3)));
    CHECK(isnan(frgi_t_quantile(NAN, 3)) && isnan(frgi_t_quantile(-0.5, 3)) &&
          isnan(frgi_t_quantile(0.5, NAN)));
    CHECK(frgi_t_quantile(0.975, INFINITY) == frgi_normal_quantile(0.975));
    CHECK(isnan(frgi_f_upper(NAN, 1, 3)) && isnan(frgi_f_upper(1, NAN, 3)) &&
          isnan(frgi_f_upper(1, 2, NAN)) && isnan(frgi_f_upper(1, 2, 0)));
    CHECK(frgi_f_upper(1e308, 1e3, 1) == 0);
    CHECK(close(frgi_f_upper(3, 2, INFINITY), exp(-3))); /* chi squared of two degrees */
    CHECK(close(frgi_normal_upper(0), 0.5) && frgi_normal_quantile(0.5) == 0);
    CHECK(frgi_normal_quantile(0) == (double)-INFINITY &&
          frgi_normal_quantile(1) == (double)INFINITY);
    CHECK(isnan(frgi_normal_quantile(NAN)) && isnan(frgi_normal_quantile(-0.1)) &&
          isnan(frgi_normal_quantile(1.1)));
    CHECK(isnan(frgi_beta_cdf(NAN, 0.5, 1, 1)) && isnan(frgi_beta_cdf(0.5, NAN, 1, 1)));
    CHECK(frgi_beta_cdf(0, 1, 2, 3) == 0 && frgi_beta_cdf(1, 0, 2, 3) == 1);
    /* I_x(a, b) + I_1-x(b, a) = 1 */
    for (int i = 0; i < 100; i++) {
        const double x = test_uniform(), a = exp(8 * test_uniform() - 2),
                     b = exp(8 * test_uniform() - 2);
        CHECK_NEAR(frgi_beta_cdf(x, 1 - x, a, b) + frgi_beta_cdf(1 - x, x, b, a), 1, 1e-13);
    }
}

static const test_case cases[] = {
    {"student", student},     {"fisher", fisher},
    {"quantiles", quantiles}, {"inverse normal", inverse_normal},
    {"edges", edges},
};
TEST_MAIN(cases)
